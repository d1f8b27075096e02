"""The folder of an ensemble: its description, a run per member, and their loading."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write, description_text, load_description
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.training.checkpoint_paths import CHECKPOINT_WORDS, find_checkpoint

if TYPE_CHECKING:
    from t2t_repro.runs.system import System


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


@dataclasses.dataclass(frozen=True)
class Member:
    """A model of an ensemble.

    Attributes:
        output_dir: Folder of its run.
        checkpoint: "latest", "best", "averaged" or a path; None for the choice of
            `System.load`.
    """

    output_dir: Path
    checkpoint: str | None


def load_ensemble(
    output_dir: str | Path,
    checkpoints: Sequence[str] = (),
    t2t_usr_dir: str | Path | None = None,
) -> System:
    """Load several trained models as a system whose model is their ensemble.

    The system has the problem of the first member. Its limit on the length of a source
    is the lowest one of all members.

    Args:
        output_dir: Folder of an ensemble or of a run.
        checkpoints: See `find_members`.
        t2t_usr_dir: Folder of the user's package; by default the one of each run, as
            for `System.load`.

    Raises:
        UserError: If a run or a checkpoint is missing or damaged, or the vocabularies
            differ.
    """
    from t2t_repro.features.ensembles.ensemble_model import Ensemble
    from t2t_repro.runs.system import System

    systems = [
        System.load(member.output_dir, member.checkpoint, t2t_usr_dir)
        for member in find_members(output_dir, checkpoints)
    ]
    first = systems[0]
    longest = min(system.run.hparams.max_length for system in systems)
    hparams = first.run.hparams.replace(max_length=longest)
    return System(
        dataclasses.replace(first.run, hparams=hparams),
        first.problem,
        Ensemble([system.model for system in systems]),
        (first.source_tokenizer, first.target_tokenizer),
        ",".join(system.checkpoint for system in systems),
    )


def find_members(
    output_dir: str | Path, checkpoints: Sequence[str] = ()
) -> list[Member]:
    """Find the runs and checkpoints of an ensemble; imports no TensorFlow.

    Args:
        output_dir: Folder of an ensemble or of a run.
        checkpoints: Of an ensemble's folder, nothing, or the one word "latest", "best"
            or "averaged" for all members. Of a run's folder, for each member one of
            these words, the path of a checkpoint of any run, or the folder of another
            run. Without a word, the checkpoint is chosen as by `System.load`.

    Raises:
        UserError: If there is no member, a run or a checkpoint is missing, or the
            vocabularies differ.
    """
    folders = member_folders(output_dir)
    if folders:
        which = _common_word(output_dir, checkpoints)
        members = [Member(folder, which) for folder in folders]
    elif checkpoints:
        members = [_member(Path(output_dir), which) for which in checkpoints]
    else:
        raise UserError("received no checkpoints, expected one per member.")
    first = members[0].output_dir
    for member in members:
        find_checkpoint(
            member.output_dir,
            "latest" if member.checkpoint is None else member.checkpoint,
        )
        if _vocabularies(member.output_dir) != _vocabularies(first):
            raise UserError(
                f"received {first} and {member.output_dir}, whose vocabularies differ, "
                "expected runs with one vocabulary: train them on the same data_dir."
            )
    return members


def _common_word(output_dir: str | Path, checkpoints: Sequence[str]) -> str | None:
    """Return the word that names a checkpoint of every member, or None.

    Raises:
        UserError: If there is anything else.
    """
    if not checkpoints:
        return None
    if len(checkpoints) > 1 or checkpoints[0] not in CHECKPOINT_WORDS:
        raise UserError(
            f"received checkpoints {','.join(checkpoints)} of {output_dir}, the folder "
            f"of an ensemble, expected one of {', '.join(CHECKPOINT_WORDS)} for all "
            "its members, or the folder of a run."
        )
    return checkpoints[0]


def _member(output_dir: Path, which: str) -> Member:
    # A word names a checkpoint of `output_dir`, whatever the current folder holds.
    if not which or which in CHECKPOINT_WORDS:
        return Member(output_dir, which)
    path = Path(which)
    if (path / RUN_FILE).is_file():
        return Member(path, None)
    # A checkpoint is in the folder of its run, or in a folder in it such as "averaged".
    owners = [folder for folder in path.parents[:2] if (folder / RUN_FILE).is_file()]
    return Member(owners[0] if owners else output_dir, which)


def _vocabularies(output_dir: Path) -> list[bytes]:
    """Return the content of the tokenizers' files of a run."""
    tokenizers = Run.load_existing(output_dir).load_tokenizers(output_dir)
    return [tokenizer.to_bytes() for tokenizer in tokenizers]
