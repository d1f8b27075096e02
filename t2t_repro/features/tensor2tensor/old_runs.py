"""Old command lines on the folder of a model that tensor2tensor trained.

The model is imported into a folder beside its own, once for each of its checkpoints,
and the command uses that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.command_line import OF_THE_RUN, Translation
from t2t_repro.features.tensor2tensor.old_checkpoint_files import find_old_checkpoint
from t2t_repro.files import read_json
from t2t_repro.runs.run import RUN_FILE
from t2t_repro.training.checkpoint_paths import all_checkpoints, step_in_name

_FORMAT = "format"  # of our description of a run
# What the import needs to know of an old command line
_OF_THE_IMPORT = ("data_dir", "t2t_usr_dir", "problem", "hparams_set")


def import_arguments(
    translation: Translation, given: Mapping[str, str]
) -> list[str] | None:
    """Turn a command line to the imported run, if it names a model of tensor2tensor.

    Args:
        translation: The `t2t` command, which uses the imported run afterwards.
        given: Flags of the old command by name.

    Returns:
        Arguments of the `t2t import` that must come first; None if the folder holds no
        model of tensor2tensor, or it is imported already.

    Raises:
        UserError: If the command needs several checkpoints of the model.
    """
    folder = Path(translation.flags.get("output_dir", ""))
    if not is_old_model(folder):
        return None
    asked = translation.flags.pop("checkpoint_path", None)
    checkpoint = find_old_checkpoint(asked or folder)
    if translation.command == "average":
        raise UserError(
            f"received {folder}, which tensor2tensor trained, expected a run of t2t: "
            "average its checkpoints with tensor2tensor, or import one of them with "
            f"`t2t import --from tensor2tensor {folder} --output_dir RUN`."
        )
    run = folder.with_name(f"{folder.name}-imported-{_name_of(checkpoint, folder)}")
    translation.flags["output_dir"] = str(run)
    if translation.command == "train":
        for name in set(OF_THE_RUN) - {"data_dir"}:
            translation.flags.pop(name, None)
    translation.notes.append(f"{folder} is of tensor2tensor: its import is {run}")
    if run.exists():
        return None
    flags = {name: given[name] for name in _OF_THE_IMPORT if given.get(name)}
    flags |= {"checkpoint_path": checkpoint, "output_dir": str(run)}
    pairs = [text for name, value in flags.items() for text in (f"--{name}", value)]
    return ["import", str(folder), "--from", "tensor2tensor", *pairs]


def _name_of(checkpoint: str, folder: Path) -> str:
    """Return the step of a checkpoint, after the name of its folder if it is another.

    `t2t-avg-all` gives an average the step of the last checkpoint.
    """
    path = Path(checkpoint).resolve()
    step = step_in_name(checkpoint)
    name = path.name if step is None else str(step)
    return name if path.parent == folder.resolve() else f"{path.parent.name}-{name}"


def is_old_model(folder: Path) -> bool:
    """Return whether a folder has checkpoints, and not the description of our run."""
    if not all_checkpoints(folder):
        return False
    try:
        return _FORMAT not in read_json(folder / RUN_FILE)
    except FileNotFoundError:
        return True
    except (OSError, ValueError, TypeError):
        return False
