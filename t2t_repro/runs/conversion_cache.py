"""Remove conversions for CTranslate2 that no command will use again.

Imports no TensorFlow.
"""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.export.ctranslate2_folder import (
    DESCRIPTION_FILE,
    ExportDescription,
    checkpoint_digest,
)
from t2t_repro.files import INCOMPLETE, remove_unless_held
from t2t_repro.training.checkpoint_paths import run_checkpoints

logger = logging.getLogger(__name__)


def prune_conversions(output_dir: str | Path, new: Path) -> None:
    """Keep the newest conversion of each quantization, and remove the others.

    One whose checkpoint no longer exists is removed, too. One that another process
    uses, or that cannot be read, is left alone. An error of the file system is logged.

    Args:
        output_dir: Folder of the run.
        new: Conversion that was just made, which is the newest. No other process may be
            writing into its folder.
    """
    try:
        _prune(output_dir, new)
    except OSError as error:
        reason = error.strerror or error
        logger.warning("cannot remove older conversions in %s: %s", new.parent, reason)


def _prune(output_dir: str | Path, new: Path) -> None:
    found = _conversions(new.parent)
    kept = {new}
    kinds = {description.quantization for description in found.values()}
    for kind in kinds - {found[new].quantization}:
        same = [path for path in found if found[path].quantization == kind]
        newest = max(same, key=_time_of)
        if _checkpoint_exists(output_dir, found[newest]):
            kept.add(newest)
    for path in found.keys() - kept:
        if remove_unless_held(path, DESCRIPTION_FILE):
            logger.info("removed the older conversion %s", path)
    for left in new.parent.glob(f"*{INCOMPLETE}"):
        shutil.rmtree(left, ignore_errors=True)


def _conversions(folder: Path) -> dict[Path, ExportDescription]:
    """Return the descriptions of the conversions that can be read."""
    found = {}
    for path in folder.glob(f"*/{DESCRIPTION_FILE}"):
        if path.parent.suffix != INCOMPLETE:
            with suppress(UserError):
                found[path.parent] = ExportDescription.load(path.parent)
    return found


def _time_of(path: Path) -> int:
    return (path / DESCRIPTION_FILE).stat().st_mtime_ns


def _checkpoint_exists(output_dir: str | Path, conversion: ExportDescription) -> bool:
    """Return whether the run, or the recorded path, has the converted checkpoint."""
    for path in [*run_checkpoints(output_dir), conversion.checkpoint]:
        with suppress(UserError):
            if checkpoint_digest(path) == conversion.checkpoint_digest:
                return True
    return False
