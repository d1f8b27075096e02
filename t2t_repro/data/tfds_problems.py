"""Translation problems on the text of tensorflow-datasets."""

from __future__ import annotations

import functools
import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit

from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.request import SplitText, TfdsName
from t2t_repro.errors import UsageError, UserError
from t2t_repro.progress import may_draw_bars

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

logger = logging.getLogger(__name__)

TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SENTENCES_AT_A_TIME = 1_000
# Four attempts, each with up to 4 seconds for a connection, and pauses of 1.2 seconds.
_RETRIES = 3
_SECONDS_TO_CONNECT = 4
_SECONDS_OF_SILENCE = 60


class TfdsProblem(Problem):
    """Pairs of a data set of tensorflow-datasets; its split "validation" is dev.

    Attributes:
        data_set: Name of the data set, such as "wmt14_translate/de-en".
    """

    data_set: str | None = None

    def sides(self, builder: tfds.core.DatasetBuilder) -> tuple[str, str]:
        """Return the names of the features of the source and of the target.

        Raises:
            UserError: If the data set does not have two sides of text.
        """
        raise NotImplementedError

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        import tensorflow_datasets as tfds

        builder = self._builder(tmp_dir)
        sides = self.sides(builder)
        _download(builder)
        text = builder.as_dataset(split=TFDS_SPLITS[split], shuffle_files=False)
        for batch in tfds.as_numpy(text.batch(_SENTENCES_AT_A_TIME).prefetch(1)):
            for source, target in zip(*(batch[side] for side in sides), strict=True):
                yield _line(source), _line(target)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return {"tensorflow_datasets": {"name": self._builder(tmp_dir).info.full_name}}

    def check(self, tmp_dir: str | Path | None) -> None:
        builder = self._builder(tmp_dir)
        self.sides(builder)
        _download(builder)

    def _builder(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        import tensorflow_datasets as tfds

        if self.data_set is None:
            raise UsageError(
                f"{self.name} received no data set, expected tfds, the name of one of "
                "tensorflow-datasets"
            )
        try:
            return tfds.builder(self.data_set, data_dir=tmp_dir)
        # An unknown name, configuration or version: errors of several kinds.
        except Exception as error:
            raise UserError(
                f"received data set {self.data_set}, expected one of "
                f"tensorflow-datasets: {_first_line(error)}"
            ) from error


class TfdsTranslationProblem(TfdsProblem):
    """A translation data set, whose first supervised key is the source.

    A `_rev` problem exchanges the sides.

    Args:
        name: Name of the data set, such as "ted_hrlr_translate/pt_to_en".
    """

    file_kind = "tfds"
    drop_duplicates = True

    def __init__(self, name: str | None = None) -> None:
        self.data_set = name

    @property
    def has_text(self) -> bool:
        return self.data_set is not None

    def with_files(self, files: Mapping[str, SplitText]) -> Self:
        return type(self)(cast("TfdsName", files["train"]).name)

    def num_pairs(self, split: str, tmp_dir: str | Path | None) -> int | None:
        return self._builder(tmp_dir).info.splits[TFDS_SPLITS[split]].num_examples

    def check(self, tmp_dir: str | Path | None) -> None:
        super().check(tmp_dir)
        info = self._builder(tmp_dir).info
        there = info.splits
        self.splits = tuple(split for split in SPLITS if TFDS_SPLITS[split] in there)
        if not {"train", "dev"}.issubset(self.splits):
            raise UserError(
                f"received data set {info.full_name} with the splits "
                f"{', '.join(there) or 'none'}, expected train and validation: give "
                "its text to the problem text_pairs, which can hold some out"
            )

    def sides(self, builder: tfds.core.DatasetBuilder) -> tuple[str, str]:
        import tensorflow_datasets as tfds

        keys = builder.info.supervised_keys
        features = builder.info.features or {}
        if (
            not isinstance(keys, tuple)
            or len(keys) != 2
            or not all(isinstance(features[key], tfds.features.Text) for key in keys)
        ):
            raise UserError(
                f"received data set {builder.info.full_name} with supervised keys "
                f"{keys}, expected two that are text, as translations have"
            )
        return keys


class TranslateWmt14(TfdsProblem):
    """A language pair of WMT 2014, English first.

    The training split is all the text of the constrained task, the dev split is
    newstest2013, and the test split is newstest2014, as in section 5.1 of
    arXiv:1706.03762. The text is raw; the tokenization of the papers' scores belongs to
    the scoring.

    Attributes:
        target_language: Code of the other language.
    """

    source_language: str = "en"
    target_language: str

    def sides(self, builder: tfds.core.DatasetBuilder) -> tuple[str, str]:
        del builder
        return self.source_language, self.target_language


def _line(text: bytes) -> str:
    return text.decode("utf-8").replace("\n", " ")


def _first_line(error: Exception) -> str:
    """Return the first line of the message of an error, or its type without one."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _download(builder: tfds.core.DatasetBuilder) -> None:
    """Download the text if it is missing.

    Raises:
        UserError: If the download fails.
    """
    if not builder.is_prepared():
        logger.info("%s: downloading the text", builder.info.full_name)
    try:
        with _limit_waiting(), _restrict_bars():
            builder.download_and_prepare()
    # If a mirror is gone, there is a network error, a wrong checksum, a broken archive,
    # or a page instead of an archive.
    except Exception as error:
        raise _download_error(builder.info.full_name, error) from error


@contextmanager
def _limit_waiting() -> Generator[None]:
    """Limit how long tensorflow-datasets tries to connect, for which it has no option.

    By default, it tries 11 times with growing pauses, which takes 3.5 minutes if there
    is no network, and it waits without limit for a server that does not answer.
    """
    from tensorflow_datasets.core.download import downloader

    seconds = (_SECONDS_TO_CONNECT, _SECONDS_OF_SILENCE)
    limited = {
        "MAX_RETRIES": _RETRIES,
        "_open_url": functools.partial(downloader._open_url, timeout=seconds),
    }
    usual = {name: getattr(downloader, name) for name in limited}
    try:
        for name, value in limited.items():
            setattr(downloader, name, value)
        yield
    finally:
        for name, value in usual.items():
            setattr(downloader, name, value)


@contextmanager
def _restrict_bars() -> Generator[None]:
    """Keep tensorflow-datasets from drawing bars where the program draws none."""
    import tensorflow_datasets as tfds

    if may_draw_bars():
        yield
        return
    tfds.disable_progress_bar()
    try:
        yield
    finally:
        tfds.enable_progress_bar()


def _download_error(name: str, error: Exception) -> UserError:
    """Return the error for a failed download; without a network, `requests` failed."""
    import requests

    request = getattr(error, "request", None)
    if isinstance(error, (requests.ConnectionError, requests.Timeout)) and request:
        return UserError(
            f"{name}: cannot download {request.url}: no connection to "
            f"{urlsplit(request.url).hostname}.\nCheck the network, or set HTTP_PROXY "
            "and HTTPS_PROXY, and try again (finished downloads are kept); or give "
            "your own text to the problem text_pairs"
        )
    return UserError(
        f"downloading {name} with tensorflow-datasets failed: {_first_line(error)}.\n"
        "Try again (finished downloads are kept), or give the text to the problem "
        "text_pairs"
    )
