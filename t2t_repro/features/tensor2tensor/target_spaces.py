"""The row of the target spaces that a model of tensor2tensor was trained with.

It adds row `target_space_id` of a matrix to every position of the encoder's input. The
id belongs to the problem and is not in any file.
"""

from __future__ import annotations

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.old_checkpoint import OldCheckpoint
from t2t_repro.features.tensor2tensor.variable_names import TARGET_SPACES, slot_name

# Target spaces of problems that are not those of text; see `SpaceID` of tensor2tensor's
# data_generators/problem.py.
_KNOWN = {"algorithmic_": 11, "wsj_parsing": 15, "ice_parsing": 19}


def choose_target_space(
    checkpoint: OldCheckpoint, given: int | None, problem: str
) -> tuple[int, str]:
    """Return the row that the model was trained with, and why.

    Args:
        checkpoint: The checkpoint.
        given: Row that the user gives, or None.
        problem: Name of the problem; empty if nothing tells.

    Returns:
        The row, and the reason; empty if there are no rows.

    Raises:
        UserError: If there is no such row.
    """
    if TARGET_SPACES not in checkpoint.shapes:
        if given is not None:
            raise UserError(
                f"received target_space_id={given}, expected none: the checkpoint has "
                "no embedding of target spaces."
            )
        return 0, ""
    rows = checkpoint.shapes[TARGET_SPACES][0]
    if given is not None:
        if not 0 <= given < rows:
            raise UserError(
                f"received target_space_id={given}, expected a row below {rows}."
            )
        return given, "as given"
    if (row := used_target_space(checkpoint)) is not None:
        return row, "the only one that was trained"
    for beginning, row in _KNOWN.items():
        if problem.startswith(beginning):
            return row, f"that of {problem}"
    return (
        0,
        "that of text problems since version 1.3 (target_space_id chooses another)",
    )


def used_target_space(checkpoint: OldCheckpoint) -> int | None:
    """Return the only row of the target spaces that training changed.

    Returns:
        The row, or None if nothing tells it: there are no moments, or they are zero.
    """
    name = slot_name("squares", TARGET_SPACES)
    if name not in checkpoint.shapes:
        return None
    moments = checkpoint.values([name])[name]
    rows = np.flatnonzero(np.any(moments != 0, axis=1))
    return int(rows[0]) if len(rows) == 1 else None
