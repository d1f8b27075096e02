"""The folder of an ensemble: its description, and a run in a folder per member."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Self

from t2t_repro.description_file import description_text, load_description
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write

ENSEMBLE_FILE = "ensemble.json"
FORMAT = 1
FEWEST_MEMBERS = 2
MOST_MEMBERS = 100


@dataclasses.dataclass(frozen=True)
class EnsembleFolder:
    """The content of `ensemble.json`.

    Attributes:
        members: Number of models.
        format: Version of the file's format.
    """

    members: int
    format: int = FORMAT

    @classmethod
    def load(cls, output_dir: str | Path) -> Self | None:
        """Read an ensemble's file, or return None if there is none.

        Raises:
            UserError: If the file is damaged or of another version.
        """
        return load_description(
            Path(output_dir) / ENSEMBLE_FILE,
            cls._from_values,
            expected_format=FORMAT,
            advice="restore it from a copy, or train into another output_dir.",
        )

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        ensemble = cls(**values)
        members = ensemble.members
        if type(members) is not int or not FEWEST_MEMBERS <= members <= MOST_MEMBERS:
            raise UserError(
                f"received {members!r} members, expected a number from "
                f"{FEWEST_MEMBERS} to {MOST_MEMBERS}"
            )
        return ensemble

    def save(self, output_dir: str | Path) -> None:
        """Write the file, completely or not at all."""
        text = description_text(dataclasses.asdict(self))
        atomic_write(Path(output_dir) / ENSEMBLE_FILE, text)

    def folders(self, output_dir: str | Path) -> list[Path]:
        """Return the folder of each member's run."""
        return [Path(output_dir) / f"member-{i + 1}" for i in range(self.members)]


def member_folders(output_dir: str | Path) -> list[Path]:
    """Return the folders of an ensemble's members; none if the folder has no ensemble.

    Raises:
        UserError: If the description of the ensemble is damaged.
    """
    ensemble = EnsembleFolder.load(output_dir)
    return [] if ensemble is None else ensemble.folders(output_dir)
