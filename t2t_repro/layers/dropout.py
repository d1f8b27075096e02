"""Dropout with masks that are cheap to compute.

Dropout needs one biased bit per unit, not random numbers of the quality that
simulations need. Differs from `keras.layers.Dropout`, which draws Philox numbers:
compiled by XLA for a CPU, they take a large part of a training step. A hash of the
unit's number costs less (`benchmarks/dropout.py`) and is a function of the seed alone.
"""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID

GOLDEN_RATIO = 0x9E3779B9  # 2^32 / phi; odd, so its multiples visit every word


def _word(value: int) -> KerasTensor:
    return ops.convert_to_tensor(value, dtype="uint32")


def hash_words(x: KerasTensor, key: KerasTensor | int = 0) -> KerasTensor:
    """Hash 32-bit words by a bijection, so that no two inputs collide.

    Source: C. Wellons, "Prospecting for Hash Functions" (2018), `lowbias32` with the
    constants of the smallest bias found since. The key is added in the middle, so that
    the hashes of two keys are not the same sequence with two starting points.

    Args:
        x: uint32, any shape.
        key: uint32 scalar; 0 selects the published function.

    Returns:
        uint32 of the same shape.
    """
    x = _xor_shifted(x, 16) * _word(0x21F0AAAD) + ops.cast(key, "uint32")
    x = _xor_shifted(x, 15) * _word(0xD35A2D97)
    return _xor_shifted(x, 15)


def _xor_shifted(x: KerasTensor, places: int) -> KerasTensor:
    return ops.bitwise_xor(x, ops.right_shift(x, _word(places)))


def random_words(x: KerasTensor, seed: KerasTensor) -> KerasTensor:
    """Draw a uniform 32-bit word for every element of a tensor.

    Args:
        x: Any tensor of fewer than 2^31 elements. Only its shape matters.
        seed: Two integers, `[2]`, from `keras.random.SeedGenerator`.

    Returns:
        uint32 of the shape of `x`, a function of this shape and the seed.
    """
    seed = ops.cast(seed, "uint32")
    start = hash_words(seed[0])
    key = hash_words(start + seed[1])
    shape = ops.shape(x)
    number = ops.reshape(ops.arange(math.prod(shape), dtype="int32"), shape)
    return hash_words(ops.cast(number, "uint32") * _word(GOLDEN_RATIO) + start, key=key)


@keras.saving.register_keras_serializable(package="t2t_repro")
class Dropout(keras.layers.Dropout):
    """Zero each unit with probability `rate`, scale the others by 1 / (1 - rate).

    Args:
        rate: Probability, at least 0 and below 1.
        seed: Seed of the layer's generator. By default, drawn from Keras's global seed.
        **kwargs: Arguments of `keras.layers.Dropout`.

    Raises:
        ValueError: If the rate is out of range.

    Call arguments:
        inputs: Float tensor, any shape.
        training: Whether dropout is active.

    Returns:
        A tensor like `inputs`.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        if not 0 <= rate < 1:
            raise ValueError(
                f"`rate` must be at least 0 and below 1. Received: rate={rate}"
            )
        kwargs.pop("noise_shape", None)  # always None; from the parent's configuration
        super().__init__(rate, seed=seed, **kwargs)

    def call(self, inputs: KerasTensor, training: bool | None = False) -> KerasTensor:
        if not training or self.rate == 0:
            return inputs
        keep = self._draw_kept(inputs)
        return ops.where(keep, inputs / (1.0 - self.rate), ops.zeros_like(inputs))

    def _draw_kept(self, inputs: KerasTensor) -> KerasTensor:
        """Draw which elements are kept, boolean of the shape of `inputs`."""
        words = random_words(inputs, self.seed_generator.next())
        return words >= _word(round(self.rate * 2**32))


@keras.saving.register_keras_serializable(package="t2t_repro")
class SymbolDropout(Dropout):
    """Replace each id by padding with probability `rate`, and leave the others.

    tensor2tensor: hparam `symbol_dropout` (`modalities.py: symbol_bottom`). The
    embedding of padding is the zero vector, so only the position of a dropped symbol is
    known.

    Call arguments:
        inputs: Ids, int32, any shape.
        training: Whether ids are dropped.

    Returns:
        Ids like `inputs`.
    """

    def call(self, inputs: KerasTensor, training: bool | None = False) -> KerasTensor:
        if not training or self.rate == 0:
            return inputs
        return ops.where(self._draw_kept(inputs), inputs, PAD_ID)
