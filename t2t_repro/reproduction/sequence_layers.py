"""The layers of Table 1 behind one interface: sequences in, sequences out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.attention import MultiheadAttention

KERNEL_SIZE = 3  # k of Table 1; also the dilation from a layer to the next
NEIGHBOURHOOD = 31  # r of Table 1


@dataclasses.dataclass(frozen=True)
class SequenceLayer:
    """A layer type of Table 1, or one that section 4 speaks of.

    Attributes:
        row: Name of the row of Table 1 whose orders it shares.
        label: What it is.
        make: From a width to the layer, `[batch, n, width]` to `[batch, n, width]`.
        make_hop: From a width and a number from 0 on to the operation by which
            signals go on from where that many such operations have taken them. A
            layer's path is as long as the number of hops. The layer itself but for
            recurrent ones, whose hop is a transition to the next position, and for
            dilated convolutions, which reach further with every layer.
    """

    row: str
    label: str
    make: Callable[[int], Callable[[KerasTensor], KerasTensor]]
    make_hop: Callable[[int, int], Callable[[KerasTensor], KerasTensor]]


def _attention(
    width: int, neighbourhood: int = 0
) -> Callable[[KerasTensor], KerasTensor]:
    # One head: Table 1's d is the whole width.
    layer = MultiheadAttention(
        hidden_size=width,
        num_heads=1,
        key_channels=width,
        value_channels=width,
        neighbourhood=neighbourhood,
    )
    return lambda x: layer(x, x)


def _convolution(width: int, dilation: int = 1) -> keras.layers.Layer:
    return keras.layers.Conv1D(
        width, KERNEL_SIZE, padding="same", dilation_rate=dilation
    )


def _separable(width: int) -> keras.layers.Layer:
    return keras.layers.SeparableConv1D(width, KERNEL_SIZE, padding="same")


def _recurrent(width: int) -> keras.layers.Layer:
    return keras.layers.GRU(width, return_sequences=True)


def _transition(width: int) -> Callable[[KerasTensor], KerasTensor]:
    """Make the step of a recurrent layer, from every position to the next at once."""
    cell = keras.layers.GRUCell(width)

    def hop(states: KerasTensor) -> KerasTensor:
        before = ops.pad(states[:, :-1], [[0, 0], [1, 0], [0, 0]])
        rows = ops.reshape(states, (-1, width))
        _, after = cell(rows, [ops.reshape(before, (-1, width))])
        return ops.reshape(after[0], ops.shape(states))

    return hop


SEQUENCE_LAYERS = (
    SequenceLayer(
        "Self-Attention", "self-attention", _attention, lambda d, _: _attention(d)
    ),
    SequenceLayer(
        "Recurrent", "recurrent (GRU)", _recurrent, lambda d, _: _transition(d)
    ),
    SequenceLayer(
        "Convolutional",
        f"convolution, k = {KERNEL_SIZE}",
        _convolution,
        lambda d, _: _convolution(d),
    ),
    SequenceLayer(
        "Convolutional",
        f"dilated convolutions, k = {KERNEL_SIZE}",
        lambda d: _convolution(d, KERNEL_SIZE),
        lambda d, number: _convolution(d, KERNEL_SIZE**number),
    ),
    SequenceLayer(
        "Convolutional",
        f"separable convolution, k = {KERNEL_SIZE}",
        _separable,
        lambda d, _: _separable(d),
    ),
    SequenceLayer(
        "Self-Attention (restricted)",
        f"restricted self-attention, r = {NEIGHBOURHOOD}",
        lambda d: _attention(d, NEIGHBOURHOOD),
        lambda d, _: _attention(d, NEIGHBOURHOOD),
    ),
)
