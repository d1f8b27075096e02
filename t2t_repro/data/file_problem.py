"""Problems on the user's own files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar, cast

from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.reading_progress import counted
from t2t_repro.data.split_files import (
    PairCorpora,
    PairFiles,
    PairLists,
    SplitText,
    TreeFile,
    identities,
)
from t2t_repro.data.text_files import has_byte_order_mark
from t2t_repro.errors import UsageError

logger = logging.getLogger(__name__)

Files = TypeVar("Files", bound=PairFiles | PairCorpora | PairLists | TreeFile)


class FileProblem(Problem, Generic[Files]):
    """A problem on the user's own files; a subclass implements `read`.

    Args:
        files: Files of "train" and, if given, of "dev" and "test".

    Attributes:
        contents: Contents of the files, such as "trees", for messages.
        training_files: Names of the training files, for messages.
    """

    contents: ClassVar[str]
    training_files: ClassVar[str]

    def __init__(self, files: Mapping[str, Files] | None = None) -> None:
        self._files: dict[str, Files] = dict(files or {})
        self._num_pairs: dict[str, int] = {}
        if self._files:
            self.splits = tuple(split for split in SPLITS if split in self._files)

    @property
    def has_text(self) -> bool:
        return bool(self._files)

    def read(self, files: Files) -> Iterator[tuple[str, str]]:
        """Yield the pairs of the files of one split.

        Raises:
            UserError: If a file is missing or broken.
        """
        raise NotImplementedError

    def with_files(self, files: Mapping[str, SplitText]) -> Self:
        return type(self)(cast("Mapping[str, Files]", files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        del tmp_dir
        self._require_files()
        return self.read(self._files[split])

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        del tmp_dir
        self._require_files()
        return identities(self._files)

    def check(self, tmp_dir: str | Path | None) -> None:
        del tmp_dir
        self._require_files()
        for split, files in self._files.items():
            self.check_split(split, counted(self.read(files), self.num_pairs(split)))
            for path in set(files.paths.values()):
                if has_byte_order_mark(path):
                    logger.warning("%s: its byte-order mark is left out", path)
            names = " and ".join(map(str, files.paths.values()))
            logger.info("%s: %s", split, names or "given in memory")

    def check_split(self, split: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Read a split to its end, which checks its text.

        Args:
            split: Name of the split.
            pairs: All pairs of its files.

        Raises:
            UserError: If the text cannot be used.
        """
        self._num_pairs[split] = sum(1 for _ in pairs)

    def num_pairs(self, split: str, tmp_dir: str | Path | None = None) -> int | None:
        del tmp_dir
        return self._num_pairs.get(split)

    def _require_files(self) -> None:
        if "train" not in self._files:
            raise UsageError(
                f"{self.name} received no training {self.contents}, expected "
                f"{self.training_files}"
            )
