"""Find a checkpoint that tensor2tensor wrote; imports no TensorFlow."""

from __future__ import annotations

import os
import re
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.files import check_tensorflow_path, matching
from t2t_repro.training.checkpoint_paths import STATE_FILE, all_checkpoints

_STATE = re.compile(r'^model_checkpoint_path:\s*"([^"]+)"', re.MULTILINE)
_MAX_STATE_BYTES = 2**20
_FILE = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")


def find_old_checkpoint(place: str | Path) -> str:
    """Return the path of a checkpoint, without `.index`.

    Args:
        place: A folder, or the path of a checkpoint or of one of its files.

    Raises:
        UserError: If there is none.
    """
    check_tensorflow_path(place)
    if Path(place).is_dir():
        return _newest(Path(place))
    path = _FILE.sub("", str(place))
    if not Path(f"{path}.index").exists():
        raise UserError(
            f"received {place}, expected a folder that `t2t-trainer` wrote, or a "
            "checkpoint such as MODEL_DIR/model.ckpt-250000."
        )
    return path


def _newest(folder: Path) -> str:
    """Return the checkpoint that the folder's state file names, or the last by step."""
    state = folder / STATE_FILE
    if state.is_file() and state.stat().st_size <= _MAX_STATE_BYTES:
        named = _STATE.search(state.read_text("utf-8", "replace"))
        # The folder may have been moved since.
        path = folder / Path(named[1]).name if named else folder
        if os.path.exists(f"{path}.index"):  # whatever the name is
            return str(path)
    found = all_checkpoints(folder)
    if found:
        return found[-1]
    others = sorted(path.stem for path in matching(folder, "*.index"))
    hint = f" It has {', '.join(others)}: give the path of one." if others else ""
    raise UserError(
        f"received {folder}, expected a folder with a checkpoint of tensor2tensor, "
        f"such as model.ckpt-250000.index.{hint}"
    )
