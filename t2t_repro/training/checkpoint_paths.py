"""Names of checkpoints, and how to find them; imports no TensorFlow."""

from __future__ import annotations

import re
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.files import check_tensorflow_path, current_folder, matching, read_json

CHECKPOINT_NAME = "model.ckpt"
STATE_FILE = "checkpoint"  # for programs that call tf.train.latest_checkpoint
BEST_FOLDER = "best"
AVERAGED_FOLDER = "averaged"
BEST_MODELS_FOLDER = "best_models"
SCORES_FILE = "scores.json"

_ORIGINS = {
    "latest": "`t2t train` writes it",
    "best": "`t2t train` keeps the one with the highest score of its evaluations, "
    "which need a dev split and eval_sentences above 0",
    "averaged": "`t2t average --output_dir {output_dir}` makes it",
}

# Names of checkpoints of a run.
CHECKPOINT_WORDS = tuple(_ORIGINS)


def all_checkpoints(output_dir: str | Path) -> list[str]:
    """Return the paths of the checkpoints in a folder, oldest step first.

    Raises:
        UserError: If the folder cannot be listed.
    """
    folder = Path(output_dir)
    steps = {}
    for index in matching(folder, f"{CHECKPOINT_NAME}-*.index"):
        if match := re.fullmatch(rf"{CHECKPOINT_NAME}-(\d+)", index.stem):
            steps[int(match[1])] = str(index.with_suffix(""))
    return [steps[step] for step in sorted(steps)]


def last_checkpoints(output_dir: str | Path, last: int) -> list[str]:
    """Return the paths of the newest checkpoints of a run, oldest step first.

    Args:
        output_dir: Folder of the run.
        last: Number of checkpoints.

    Raises:
        UserError: If the run has fewer checkpoints.
    """
    paths = all_checkpoints(output_dir)
    if not paths:
        raise UserError(f"no checkpoint in {output_dir}: `t2t train` writes them.")
    if len(paths) < last:
        raise UserError(
            f"received last={last}, but {output_dir} has {len(paths)} checkpoint(s), "
            f"of step {steps_text(paths)}: give at most {len(paths)}. The training's "
            "keep_checkpoint_max decides how many are kept."
        )
    return paths[-last:]


def recorded_scores(output_dir: str | Path) -> dict[int, float]:
    """Return the scores of a run's best models by step; empty if none are kept."""
    path = Path(output_dir) / BEST_MODELS_FOLDER / SCORES_FILE
    try:
        scores = read_json(path)
        return {int(step): float(score) for step, score in scores.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def best_checkpoints(output_dir: str | Path, best: int) -> list[str]:
    """Return the paths of the checkpoints with the highest scores, oldest step first.

    Args:
        output_dir: Folder of the run.
        best: Number of checkpoints.

    Raises:
        UserError: If the run keeps fewer.
    """
    scores = recorded_scores(output_dir)
    folder = Path(output_dir) / BEST_MODELS_FOLDER
    paths = [path for path in all_checkpoints(folder) if step_of(path) in scores]
    if len(paths) < best:
        raise UserError(
            f"received best={best}, but {output_dir} keeps {len(paths)} model(s) by "
            "their scores: the training's keep_best decides how many are kept."
        )
    ranked = sorted(paths, key=lambda path: (-scores[step_of(path)], step_of(path)))
    return sorted(ranked[:best], key=step_of)


def find_checkpoint(output_dir: str | Path, which: str = "latest") -> str:
    """Find a checkpoint by "latest", "best", "averaged", or a path.

    Args:
        output_dir: Folder of the run.
        which: One of the three words, or the path of a checkpoint or of one of its
            files.

    Returns:
        The path of the checkpoint, without `.index`.

    Raises:
        UserError: If there is no such checkpoint.
    """
    folder = Path(output_dir)
    folders = {
        "latest": folder,
        "best": current_folder(folder / BEST_FOLDER),
        "averaged": current_folder(folder / AVERAGED_FOLDER),
    }
    if which in folders:
        found = all_checkpoints(folders[which])
        if found:
            return found[-1]
        hint = _ORIGINS[which].format(output_dir=output_dir)
        raise UserError(f"no {which} checkpoint in {output_dir}: {hint}.")
    check_tensorflow_path(which)
    path = re.sub(r"\.(index|data-\d+-of-\d+)$", "", which)
    if not Path(f"{path}.index").exists():
        raise UserError(
            f"received checkpoint path {which!r}, expected latest, best, averaged, or "
            f"the path of a checkpoint such as OUTPUT_DIR/{CHECKPOINT_NAME}-1000."
        )
    return path


def step_of(path: str) -> int:
    """Return the step in the name of a run's checkpoint."""
    return int(path.rpartition("-")[2])


def step_in_name(path: str) -> int | None:
    """Return the step in a checkpoint's name, or None if a user renamed it."""
    found = re.fullmatch(rf"{CHECKPOINT_NAME}-(\d+)", Path(path).name)
    return int(found[1]) if found else None


def steps_text(paths: list[str]) -> str:
    """Return the steps of checkpoints as text, such as "20, 40"."""
    return ", ".join(str(step_of(path)) for path in paths)


def latest_step(output_dir: str | Path) -> int:
    """Return the step of a run's newest checkpoint, or 0 without a checkpoint."""
    paths = all_checkpoints(output_dir)
    return step_of(paths[-1]) if paths else 0
