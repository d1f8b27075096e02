"""Dropout, and the residual connection around a sublayer that applies it.

Dropout needs one biased bit per unit, not random numbers of the quality that
simulations need. Differs from `keras.layers.Dropout`, which draws Philox numbers:
compiled by XLA for a CPU, they take a large part of a training step. A hash of the
unit's number costs less (`benchmarks/dropout.py`) and is a function of the seed alone.

Paper sections 3.1 and 5.4; tensor2tensor `common_layers.py: layer_prepostprocess`.
"""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID, Norm, check_choice
from t2t_repro.layers.options import Sublayer

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
    x = _xor_shift(x, 16) * _word(0x21F0AAAD) + ops.cast(key, "uint32")
    x = _xor_shift(x, 15) * _word(0xD35A2D97)
    return _xor_shift(x, 15)


def _xor_shift(x: KerasTensor, places: int) -> KerasTensor:
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

    Example:
    ```python
    dropped = Dropout(0.5)(np.ones((2, 10), "float32"), training=True)
    assert set(np.unique(dropped)) <= {0.0, 2.0}
    ```
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


@keras.saving.register_keras_serializable(package="t2t_repro")
class ResidualConnection(Sublayer):
    """The two steps around a sublayer F: `prepare` its input, then add its output.

    Post-norm (the paper; tensor2tensor's "none" and "dan")::

        y = LayerNorm(x + Dropout(F(x)))

    Pre-norm (tensor2tensor's "n" and "da", its default since 2017-10)::

        y = x + Dropout(F(LayerNorm(x)))

    In both cases `y = residual(x, F(residual.prepare(x)))`.

    Args:
        norm: "post" or "pre".
        layer_prepostprocess_dropout: The paper's P_drop.
        norm_epsilon: Added to the variance in layer normalization. The papers' systems
            use 1e-6; Keras's own default is 1e-3.
        **kwargs: `hidden_size`, by default that of the input, and arguments of
            `keras.layers.Layer`.

    Call arguments:
        x: Input before `prepare`, `[batch, length, hidden_size]`.
        output: Output of the sublayer, of the same shape; or one output per branch,
            `[batch, branches, length, hidden_size]`, and x is added to each of them.
        training: Whether dropout is active.

    Returns:
        y, of the shape of `output`.

    Raises:
        ValueError: If `norm` is unknown.

    Example:
    ```python
    network = FeedForward(filter_size=2048)
    residual = ResidualConnection(norm="pre", layer_prepostprocess_dropout=0.1)
    x = keras.random.normal((2, 10, 512))
    assert residual(x, network(residual.prepare(x))).shape == (2, 10, 512)
    ```
    """

    def __init__(
        self,
        *,
        norm: Norm = "post",
        layer_prepostprocess_dropout: float = 0.0,
        norm_epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("norm", norm, Norm)
        self.norm = norm
        self.layer_prepostprocess_dropout = layer_prepostprocess_dropout
        self.norm_epsilon = norm_epsilon
        policy = self.dtype_policy
        self.dropout = Dropout(
            layer_prepostprocess_dropout, name="dropout", dtype=policy
        )
        self.normalization = keras.layers.LayerNormalization(
            epsilon=norm_epsilon, name="normalization", dtype=policy
        )

    def build(self, input_shape: Any = None) -> None:
        if not self.normalization.built:  # `prepare` builds it under pre-norm
            self.normalization.build((None, None, self.width(input_shape)))

    def prepare(self, x: KerasTensor) -> KerasTensor:
        """Return the input of the sublayer: x, normalized under pre-norm."""
        return self.normalization(x) if self.norm == "pre" else x

    def call(
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        if len(output.shape) > len(x.shape):
            x = ops.expand_dims(x, axis=1)
        total = x + self.dropout(output, training=training)
        return total if self.norm == "pre" else self.normalization(total)
