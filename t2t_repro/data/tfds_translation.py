"""Translation data sets of tensorflow-datasets, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.split_files import SplitText, TfdsName
from t2t_repro.data.tfds_text import TFDS_SPLITS, download, first_line, read_pairs
from t2t_repro.errors import UsageError, UserError

if TYPE_CHECKING:
    import tensorflow_datasets as tfds


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
        builder = self._builder(tmp_dir)
        return read_pairs(builder, split, self._sides(builder))

    def num_pairs(self, split: str, tmp_dir: str | Path | None) -> int | None:
        return self._builder(tmp_dir).info.splits[TFDS_SPLITS[split]].num_examples

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return {"tensorflow_datasets": {"name": self._builder(tmp_dir).info.full_name}}

    def check(self, tmp_dir: str | Path | None) -> None:
        builder = self._builder(tmp_dir)
        self._sides(builder)
        download(builder)
        there = builder.info.splits
        self.splits = tuple(split for split in SPLITS if TFDS_SPLITS[split] in there)
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
                f"{first_line(error)}"
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
