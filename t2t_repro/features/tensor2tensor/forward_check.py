"""Compare the logits of an imported model with those of its checkpoint.

The two ways share nothing: one reads the checkpoint by its own names in NumPy, the
other is the model here with the weights that the import gave it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_repro.constants import EOS_ID, INPUTS, PAD_ID, TARGETS
from t2t_repro.data.batch_plan import padded
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.numpy_forward import NumpyForward

LIMIT = 1e-4
# A difference of so many times that of float32 and float64 in NumPy is rounding, too.
_ROUNDING = 4
MAX_PAIRS = 16
_MAX_TOKENS = 60  # of a pair that is compared; longer ones take long in NumPy
_ROWS = 8
_LENGTHS = (5, 20)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        largest: Largest difference of two logits.
        limit: Largest difference that is accepted.
        pairs: Number of pairs.
        origin: Where the pairs come from, for messages.
    """

    largest: float
    limit: float
    pairs: int
    origin: str


Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def drawn_pairs(rows: tuple[int, int]) -> list[tuple[list[int], list[int]]]:
    """Draw ids of both sides, always the same.

    Args:
        rows: Number of rows of the source and of the target table.
    """
    generator = np.random.default_rng(1)

    def drawn(vocab_size: int) -> list[int]:
        length = int(generator.integers(*_LENGTHS))
        low = min(EOS_ID + 1, vocab_size - 1)
        return [*generator.integers(low, vocab_size, length).tolist(), EOS_ID]

    return [(drawn(rows[0]), drawn(rows[1])) for _ in range(_ROWS)]


def compare_logits(
    model: keras.Model,
    variables: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    target_space_id: int,
    pairs: Pairs,
    origin: str,
) -> Comparison:
    """Compare a model's logits with those of the checkpoint that it comes from.

    Args:
        model: The model here.
        variables: Values of the checkpoint's variables by their names.
        settings: Settings in tensor2tensor's names and values.
        target_space_id: Row of the embedding of target spaces.
        pairs: Ids of the inputs and of the targets, ending in EOS.
        origin: Where the pairs come from, for messages.

    Raises:
        UserError: If a difference is larger than `LIMIT` and than what rounding
            explains, or not a number.
    """
    short = [pair for pair in pairs if max(map(len, pair)) <= _MAX_TOKENS]
    chosen = (short or [_cut(pair) for pair in pairs])[:MAX_PAIRS]
    sides = ([pair[side] for pair in chosen] for side in (0, 1))
    inputs, targets = (padded(rows, max(map(len, rows))) for rows in sides)
    ids = inputs, targets
    model_there = functools.partial(NumpyForward, variables, settings, target_space_id)
    expected = model_there().logits(*ids)
    found = ops.convert_to_numpy(model({INPUTS: inputs, TARGETS: targets}))
    real = targets != PAD_ID
    largest = float(np.abs(found - expected)[real].max())
    limit = LIMIT
    if not largest <= limit:
        # The more layers and the larger the weights, the more rounding matters.
        rounded = model_there(dtype=np.float32).logits(*ids)
        limit = max(limit, _ROUNDING * float(np.abs(rounded - expected)[real].max()))
    if not largest <= limit:  # or not a number
        raise UserError(
            f"the model here gives other logits than the checkpoint: the largest "
            f"difference on {len(chosen)} pairs is {largest:.1e}, expected at most "
            f"{limit:.0e}. Nothing was written: it was trained with other settings, or "
            "the import has a fault."
        )
    return Comparison(largest, limit, len(chosen), origin)


def _cut(pair: tuple[Sequence[int], Sequence[int]]) -> tuple[list[int], ...]:
    return tuple([*ids[: _MAX_TOKENS - 1], EOS_ID] for ids in pair)
