"""Check what `t2t reproduce --page` is given, before anything is read or written."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from t2t_repro.errors import UsageError, UserError

PACKAGES = "matplotlib", "scipy"


def check_page(path: str) -> None:
    """Check, before anything is written, that the page and its figures can be.

    Raises:
        UsageError: If it is not named .md, or a package is not installed.
        UserError: If the folder is missing or not writable.
    """
    if not path.endswith(".md"):
        raise UsageError(f"received page={path}, expected a file name in .md.")
    if Path(path).is_dir() or not os.access(Path(path).parent, os.W_OK):
        raise UserError(
            f"received page={path}, expected a file in an existing folder that can be "
            "written to."
        )
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the pages of results need {' and '.join(missing)}: pip install -e "
            "'.[results]'."
        )
