"""Decide which settings a training takes from the run in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.errors import UsageError, UserError
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.settings.train_settings import TrainSettings


def find_run(output_dir: str | Path, *, is_described: bool) -> Run | None:
    """Return the run in a folder that completes the settings of a training.

    Args:
        output_dir: Folder of the run.
        is_described: Whether the user describes a training in full. Then a run that
            ended before its first checkpoint does not count: there is nothing to
            resume, and its settings may be why it ended.
    """
    run = Run.load(output_dir)
    if is_described and not has_checkpoint(output_dir):
        return None
    return run


def has_checkpoint(output_dir: str | Path) -> bool:
    """Return whether a folder has a checkpoint, without importing TensorFlow."""
    return any(Path(output_dir).glob("model.ckpt-*.index"))


def resumed_settings(
    run: Run, output_dir: str | Path, given: Mapping[str, Any]
) -> TrainSettings:
    """Return the settings of a run, with the given ones in their place.

    Args:
        run: The run to resume.
        output_dir: Folder of the run.
        given: Values of `TrainSettings` by name; hparams are added to the run's own.

    Raises:
        UsageError: If an earlier version began the run, which did not record the
            number of steps, and `given` does not have it.
    """
    if not run.training and "train_steps" not in given:
        raise UsageError(
            f"{output_dir} holds a run of an earlier version, which did not record its "
            "number of steps: give train_steps."
        )
    settings = run.train_settings(output_dir)
    changes = dict(given)
    if "hparams" in changes:
        changes["hparams"] = merge_overrides(settings.hparams, changes["hparams"])
    return settings.replace(**changes)


def merge_overrides(recorded: str, given: str) -> str:
    """Return recorded overrides with the given ones in their place."""
    names = {piece.partition("=")[0].strip() for piece in given.split(",")}
    kept = [
        piece for piece in recorded.split(",") if piece.partition("=")[0] not in names
    ]
    return ",".join(piece for piece in (*kept, given) if piece)


def recorded_data_dir(run: Run, output_dir: str | Path) -> Path:
    """Return the folder of the data that a run was trained on.

    Raises:
        UserError: If the folder does not exist any more.
    """
    folder = Path(run.data_dir)
    if not folder.is_dir():
        raise UserError(
            f"the data folder {folder}, recorded in {Path(output_dir) / RUN_FILE}, "
            "does not exist: give its new place as data_dir."
        )
    return folder
