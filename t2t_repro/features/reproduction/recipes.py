"""Recipes: data, length of training, and splits to score."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from t2t_repro.data.request import PairFiles, TreeFile
from t2t_repro.errors import UserError


@dataclass(frozen=True)
class Recipe:
    """Recipe to train and score a row.

    Attributes:
        problem: Name of the problem.
        train_steps: Number of updates.
        splits: Splits to score.
        hparams_set: Name of the set.
        hparams: Changes to the set, in the form of `--hparams`.
        average_last: Number of checkpoints to average after training; 0 = score the
            last one.
        save_checkpoints_steps: Steps between checkpoints; None = the default.
        save_checkpoints_secs: Seconds between checkpoints; None = the default.
        text: File names by split: source and target, or one file of trees. Empty if
            the problem has its own text.
        text_source: Origin of the files.
        vocab_size: Number of subwords; None = the problem's default.
        ranks_systems: Whether to score the last checkpoint beside the average, and both
            by the nll on dev and by BLEU on all splits together.
    """

    problem: str
    train_steps: int
    splits: tuple[str, ...]
    hparams_set: str = ""
    hparams: str = ""
    average_last: int = 0
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: int | None = None
    text: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text_source: str = ""
    vocab_size: int | None = None
    ranks_systems: bool = False

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Checkpoints to score, as `System.load` names them."""
        if not self.average_last:
            return ("latest",)
        return ("latest", "averaged") if self.ranks_systems else ("averaged",)

    @property
    def file_names(self) -> list[str]:
        """Names of all files, beginning with the training text."""
        return [name for names in self.text.values() for name in names]

    def text_flags(self) -> Iterator[tuple[str, str]]:
        """Yield each flag of `t2t train` that takes a file, with the file's name."""
        for split, names in self.text.items():
            roles = ("trees",) if len(names) == 1 else ("source", "target")
            for role, name in zip(roles, names, strict=True):
                yield f"--{split}_{role}", name

    def text_files(self, folder: Path) -> dict[str, PairFiles | TreeFile]:
        """Return the files of each split in a folder."""
        files: dict[str, PairFiles | TreeFile] = {}
        for split, names in self.text.items():
            first, *others = (folder / name for name in names)
            files[split] = PairFiles(first, *others) if others else TreeFile(first)
        return files

    def text_digests(self, folder: Path) -> dict[str, str]:
        """Return the sha256 of each file in a folder, by file name.

        Raises:
            UserError: If a file is missing.
        """
        digests = {}
        for name in self.file_names:
            path = folder / name
            if not path.is_file():
                raise UserError(
                    f"received text_dir={folder}, expected {self.text_source} in it "
                    f"({', '.join(self.file_names)}): {name} is missing."
                )
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return digests
