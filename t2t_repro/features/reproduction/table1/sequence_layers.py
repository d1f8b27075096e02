"""Layers of Table 1 with one interface: sequences in, sequences out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import keras
from keras import KerasTensor, ops

from t2t_repro.features.reproduction.table1.orders import (
    CONTIGUOUS,
    CONVOLUTIONAL,
    RECURRENT,
    RESTRICTED,
    SELF_ATTENTION,
    SEPARABLE,
    LayerOrders,
)
from t2t_repro.features.reproduction.table1.sizes import Sizes
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.blocked_attention import BlockedAttention

Layer = Callable[[KerasTensor], KerasTensor]

KERNEL_SIZE = 3  # k of Table 1, and the factor between dilations of a stack
NEIGHBOURHOOD = 31  # r of Table 1


@dataclasses.dataclass(frozen=True)
class SequenceLayer:
    """A kind of layer from Table 1 or section 4.

    Attributes:
        orders: Its orders in the paper.
        label: Short description.
        make: Function from a width to the layer, which maps `[batch, n, width]` to
            `[batch, n, width]`.
        sizes: Sizes at which it is timed.
        make_hop: Function from d, n and the number of a hop (from 0) to the operation
            that takes signals one hop further. The length of a path is its number of
            hops. By default, a hop is the layer itself.
        hops_differ: Whether hops of different numbers connect different positions.
    """

    orders: LayerOrders
    label: str
    make: Callable[[int], Layer]
    sizes: Sizes
    make_hop: Callable[[int, int, int], Layer] | None = None
    hops_differ: bool = False

    def hop(self, width: int, length: int, number: int) -> Layer:
        """Make the operation of a hop; see `make_hop`."""
        if self.make_hop is None:
            return self.make(width)
        return self.make_hop(width, length, number)


def _self_attention(
    layer: type[MultiheadAttention], width: int, neighbourhood: int = 0
) -> Layer:
    # One head: Table 1's d is the whole width.
    attention = layer(
        hidden_size=width,
        num_heads=1,
        key_channels=width,
        value_channels=width,
        neighbourhood=neighbourhood,
    )
    return lambda x: attention(x, x)


def _attention(width: int) -> Layer:
    return _self_attention(MultiheadAttention, width)


def _restricted(width: int) -> Layer:
    return _self_attention(BlockedAttention, width, NEIGHBOURHOOD)


def _convolution(width: int, dilation: int = 1) -> keras.layers.Layer:
    return keras.layers.Conv1D(
        width, KERNEL_SIZE, padding="same", dilation_rate=dilation
    )


def _separable(width: int) -> keras.layers.Layer:
    return keras.layers.SeparableConv1D(width, KERNEL_SIZE, padding="same")


def _recurrent(width: int) -> keras.layers.Layer:
    return keras.layers.GRU(width, return_sequences=True)


def _dilated(width: int, length: int, number: int) -> Layer:
    """Make a layer of a stack whose dilation grows k-fold and restarts below n."""
    layers = 1
    while KERNEL_SIZE**layers < length:
        layers += 1
    return _convolution(width, KERNEL_SIZE ** (number % layers))


def _transition(width: int, length: int, number: int) -> Layer:
    """Make the step of a recurrent layer, from every position to the next one."""
    del length, number
    cell = keras.layers.GRUCell(width)

    def hop(states: KerasTensor) -> KerasTensor:
        before = ops.pad(states[:, :-1], [[0, 0], [1, 0], [0, 0]])
        rows = ops.reshape(states, (-1, width))
        _, after = cell(rows, [ops.reshape(before, (-1, width))])
        return ops.reshape(after[0], ops.shape(states))

    return hop


_QUADRATIC = Sizes((1024, 2048, 4096, 8192), (64, 128, 256, 512), 4096)
_LINEAR = Sizes((4096, 8192, 16384, 32768), (256, 512, 1024, 2048), 512)
_SEPARABLE_SIZES = Sizes((16384, 32768, 65536, 131072), (256, 512, 1024, 2048), 512)
# Narrow, so that the windows take more time than the projections.
_RESTRICTED_SIZES = Sizes((4096, 8192, 16384, 32768), (16, 32, 64, 128), 8192)
_IN_A_ROW = Sizes((64, 128, 256, 512), (256, 512, 1024, 2048), 64)

SEQUENCE_LAYERS = (
    SequenceLayer(SELF_ATTENTION, "self-attention", _attention, _QUADRATIC),
    SequenceLayer(RECURRENT, "recurrent (GRU)", _recurrent, _IN_A_ROW, _transition),
    SequenceLayer(CONTIGUOUS, f"convolution, k = {KERNEL_SIZE}", _convolution, _LINEAR),
    SequenceLayer(
        CONVOLUTIONAL,
        f"dilated convolutions, k = {KERNEL_SIZE}",
        lambda width: _convolution(width, KERNEL_SIZE),
        _LINEAR,
        _dilated,
        hops_differ=True,
    ),
    SequenceLayer(
        SEPARABLE,
        f"separable convolution, k = {KERNEL_SIZE}",
        _separable,
        _SEPARABLE_SIZES,
    ),
    SequenceLayer(
        RESTRICTED,
        f"restricted self-attention, r = {NEIGHBOURHOOD}",
        _restricted,
        _RESTRICTED_SIZES,
    ),
)
