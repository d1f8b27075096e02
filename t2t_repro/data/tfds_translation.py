"""Translation data sets of tensorflow-datasets, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.split_files import SplitText, TfdsName
from t2t_repro.errors import UsageError, UserError

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SENTENCES_AT_A_TIME = 1_000


class TfdsTranslationProblem(Problem):
    """Pairs of a data set of tensorflow-datasets.

    The first of its supervised keys is the source. The dev split is its split
    "validation". A `_rev` problem exchanges the sides.

    Args:
        name: Name of the data set, such as "ted_hrlr_translate/pt_to_en".
    """

    file_kind = "tfds"
    drop_duplicates = True

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    @property
    def has_text(self) -> bool:
        return self._name is not None

    def with_files(self, files: Mapping[str, SplitText]) -> Self:
        return type(self)(cast("TfdsName", files["train"]).name)

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        import tensorflow_datasets as tfds

        builder = self._builder(tmp_dir)
        source, target = self._sides(builder)
        dataset = builder.as_dataset(split=_TFDS_SPLITS[split], shuffle_files=False)
        batches = dataset.batch(_SENTENCES_AT_A_TIME).prefetch(1)
        for batch in tfds.as_numpy(batches):
            for pair in zip(batch[source], batch[target], strict=True):
                yield _line(pair[0]), _line(pair[1])

    def num_pairs(self, split: str, tmp_dir: str | Path | None) -> int | None:
        return self._builder(tmp_dir).info.splits[_TFDS_SPLITS[split]].num_examples

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return {"tensorflow_datasets": {"name": self._builder(tmp_dir).info.full_name}}

    def check(self, tmp_dir: str | Path | None) -> None:
        builder = self._builder(tmp_dir)
        self._sides(builder)
        _download(builder)
        there = builder.info.splits
        self.splits = tuple(split for split in SPLITS if _TFDS_SPLITS[split] in there)
        if not {"train", "dev"}.issubset(self.splits):
            raise UserError(
                f"received data set {builder.info.full_name} with the splits "
                f"{', '.join(there) or 'none'}, expected train and validation: give "
                "its text to the problem text_pairs, which can hold some out"
            )

    def _builder(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        import tensorflow_datasets as tfds

        if self._name is None:
            raise UsageError(
                f"{self.name} received no data set, expected tfds, the name of one of "
                "tensorflow-datasets"
            )
        try:
            return tfds.builder(self._name, data_dir=tmp_dir)
        # An unknown name, configuration or version: errors of several kinds.
        except Exception as error:
            raise UserError(
                f"received data set {self._name}, expected one of tensorflow-datasets: "
                f"{_first_line(error)}"
            ) from error

    def _sides(self, builder: tfds.core.DatasetBuilder) -> tuple[str, str]:
        """Return the names of the features of the source and of the target.

        Raises:
            UserError: If the data set does not have two sides of text.
        """
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


def _download(builder: tfds.core.DatasetBuilder) -> None:
    """Download the text if it is missing.

    Raises:
        UserError: If the download fails.
    """
    try:
        builder.download_and_prepare()
    # If a mirror is gone, there is a network error, a wrong checksum, a broken archive,
    # or a page instead of an archive.
    except Exception as error:
        raise UserError(
            f"fetching {builder.info.full_name} with tensorflow-datasets failed: "
            f"{_first_line(error)}.\nTry again (what has been fetched is kept), or "
            "give the text to the problem text_pairs"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _line(text: bytes) -> str:
    return text.decode("utf-8").replace("\n", " ")
