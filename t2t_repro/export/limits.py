"""Limits and checks of a served system that need no TensorFlow."""

from __future__ import annotations

from pathlib import Path

from t2t_repro.errors import UserError

MAX_SOURCE_TOKENS = 4096  # about 16,000 letters of English, or 16 sources of 256 tokens


def check_new_folder(export_dir: str | Path) -> None:
    """Refuse a folder that exists.

    Raises:
        UserError: If it does.
    """
    if Path(export_dir).exists():
        raise UserError(
            f"received export folder {export_dir}, which exists: remove it or give "
            "another."
        )
