"""Rows that hold several sentence pairs, one after another.

The features of such rows come from `data/packing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from keras import KerasTensor

from t2t_repro.constants import (
    INPUTS_POSITION,
    INPUTS_SEGMENTATION,
    TARGETS_POSITION,
    TARGETS_SEGMENTATION,
)


class PackedRows(NamedTuple):
    """Where the tokens of rows of several sentences belong.

    Attributes:
        segmentation: Number of the sentence, counted from 1; 0 for padding. int32
            `[batch, length]`.
        position: Position in the sentence, counted from 0, int32 `[batch, length]`.
    """

    segmentation: KerasTensor
    position: KerasTensor


def packed_sides(
    features: Mapping[str, KerasTensor],
) -> tuple[PackedRows, PackedRows] | tuple[None, None]:
    """Return where the tokens of packed rows belong.

    Args:
        features: Features of `Transformer`.

    Returns:
        One for the inputs and one for the targets, or None for both if each row has
        one pair.
    """
    if INPUTS_SEGMENTATION not in features:
        return None, None
    return (
        PackedRows(features[INPUTS_SEGMENTATION], features[INPUTS_POSITION]),
        PackedRows(features[TARGETS_SEGMENTATION], features[TARGETS_POSITION]),
    )
