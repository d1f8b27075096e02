"""Limits and checks of a served system that need no TensorFlow."""

from __future__ import annotations

from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.local_paths import check_new_folder, has_pattern

MAX_SOURCE_TOKENS = 4096  # about 16,000 letters of English, or 16 sources of 256 tokens


def check_saved_model_folder(export_dir: str | Path) -> None:
    """Refuse a folder that exists, or that TensorFlow could not load.

    Raises:
        UserError: If it is refused.
    """
    check_new_folder(export_dir)
    folder = Path(export_dir).absolute()
    if has_pattern(folder):
        raise UserError(
            f"received export folder {folder}, expected a path without [ and \\, from "
            "which TensorFlow loads no SavedModel: give another."
        )
