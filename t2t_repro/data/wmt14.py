"""WMT 2014 translation, with the text from tensorflow-datasets.

The training split is all the text of the constrained task, the dev split is
newstest2013, and the test split is newstest2014, as in section 5.1 of arXiv:1706.03762.
The text is raw; the tokenisation of the papers' scores belongs to the scoring.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SENTENCES_AT_A_TIME = 1_000
# Four attempts, each with up to 4 seconds for a connection, and pauses of 1.2 seconds.
_RETRIES = 3
_SECONDS_TO_CONNECT = 4
_SECONDS_OF_SILENCE = 60


class TranslateWmt14(Problem):
    """A language pair of `wmt14_translate`, English first.

    Attributes:
        tfds_config: Name of the pair in `wmt14_translate`, such as "de-en".
        target_language: Code of the other language.
    """

    tfds_config: str
    target_language: str

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        import tensorflow_datasets as tfds

        builder = self._downloaded(tmp_dir)
        dataset = builder.as_dataset(split=_TFDS_SPLITS[split], shuffle_files=False)
        batches = dataset.batch(_SENTENCES_AT_A_TIME).prefetch(1)
        for batch in tfds.as_numpy(batches):
            for source, target in zip(
                batch["en"], batch[self.target_language], strict=True
            ):
                yield _line(source), _line(target)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return {"tensorflow_datasets": {"name": self._builder(tmp_dir).info.full_name}}

    def check(self, tmp_dir: str | Path | None) -> None:
        self._downloaded(tmp_dir)

    def _builder(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        import tensorflow_datasets as tfds

        return tfds.builder(f"wmt14_translate/{self.tfds_config}", data_dir=tmp_dir)

    def _downloaded(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        """Return the builder, after downloading its text if it is missing.

        Raises:
            UserError: If the download fails.
        """
        builder = self._builder(tmp_dir)
        try:
            with _limited_waiting():
                builder.download_and_prepare()
        # If a mirror is gone, there is a network error, a wrong checksum, a broken
        # archive, or a page instead of an archive.
        except Exception as error:
            raise _failed(builder.info.full_name, error) from error
        return builder


@contextmanager
def _limited_waiting() -> Iterator[None]:
    """Limit how long tensorflow-datasets tries to connect, for which it has no option.

    By itself, it tries 11 times with growing pauses, which takes 3.5 minutes if there
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


def _failed(name: str, error: Exception) -> UserError:
    """Return the error of a download, which is one of `requests` without a network."""
    import requests

    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    request = getattr(error, "request", None)
    if isinstance(error, (requests.ConnectionError, requests.Timeout)) and request:
        return UserError(
            f"{name}: cannot download {request.url}: no connection to "
            f"{urlsplit(request.url).hostname}.\nCheck the network, or set HTTP_PROXY "
            "and HTTPS_PROXY, and try again (what has been fetched is kept); or give "
            "text of your own to the problem text_pairs"
        )
    return UserError(
        f"fetching {name} with tensorflow-datasets failed: {reason}.\nTry again (what "
        "has been fetched is kept), or give the text to the problem text_pairs"
    )


def _line(text: bytes) -> str:
    return text.decode("utf-8").replace("\n", " ")
