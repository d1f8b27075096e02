"""Adam's moments in a checkpoint of tensor2tensor, from which training continues.

Its `adam` is TensorFlow's LazyAdam, which leaves the moments of rows alone that a batch
does not touch, but only where a gradient is sparse. Those of tensor2tensor are not: it
converts the gradient of every embedding (`common_layers.convert_gradient_to_tensor`).
So it computes what Adam does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2t_repro.features.tensor2tensor.hparams_translation import ADAMS
from t2t_repro.features.tensor2tensor.old_checkpoint import OldCheckpoint
from t2t_repro.features.tensor2tensor.old_settings import OldSettings
from t2t_repro.features.tensor2tensor.variable_names import (
    BETA_POWERS,
    GLOBAL_STEP,
    Source,
    slot_name,
)
from t2t_repro.runs.imported_run import AdamState

KINDS = ("means", "squares")
# Largest difference of Adam's correction of an update from that of the step.
_CORRECTION = 1e-3


def slot_names(sources: Mapping[str, Source]) -> dict[str, dict[str, Source]]:
    """Return the sources of Adam's moments by kind and by the path of the weight."""
    return {
        kind: {
            path: Source(
                tuple(slot_name(kind, name) for name in source.names), source.row
            )
            for path, source in sources.items()
        }
        for kind in KINDS
    }


def adam_state(
    checkpoint: OldCheckpoint,
    settings: OldSettings,
    sources: Mapping[str, Source],
    *,
    shares_rows: bool,
) -> tuple[AdamState | None, str]:
    """Read Adam's moments, if the checkpoint has those of all weights.

    Args:
        checkpoint: The checkpoint.
        settings: Settings of the training.
        sources: Source of each weight by its path here.
        shares_rows: Whether several weights come from one variable, so that its moments
            are not theirs.

    Returns:
        The state, or None, and why or what it is, for messages.
    """
    slots = slot_names(sources)
    needed = {
        name
        for by_path in slots.values()
        for source in by_path.values()
        for name in source.names
    }
    if not needed <= checkpoint.shapes.keys():
        return None, "it has no moments of Adam"
    optimizer = settings.get("optimizer", "adam")
    if optimizer not in ADAMS:
        return None, f"its optimizer is {optimizer}"
    if shares_rows:
        return None, "tables that share their values there are separate here"
    counters = [n for n in (GLOBAL_STEP, *BETA_POWERS) if n in checkpoint.shapes]
    values = checkpoint.values([*sorted(needed), *counters])
    step = int(values.get(GLOBAL_STEP, 0))
    if step < 1 or not _fits_step(step, settings, values):
        return None, "its moments are those of another step, as after averaging"
    read = {
        kind: {path: source.value(values.__getitem__) for path, source in own.items()}
        for kind, own in slots.items()
    }
    return AdamState(step, read["means"], read["squares"]), f"step {step:,}"


def _fits_step(
    step: int, settings: OldSettings, values: Mapping[str, np.ndarray]
) -> bool:
    """Return whether the next update has the bias correction of the step."""
    correction = []
    for number, name in enumerate(BETA_POWERS, 1):
        beta = float(settings.get(f"optimizer_adam_beta{number}", 0.9))
        expected = beta ** (step + 1)
        found = float(values.get(name, expected))
        correction.append((1 - found) / (1 - expected))
    first, second = correction
    if first <= 0 or second <= 0:
        return False
    return abs(second**0.5 / first - 1) <= _CORRECTION
