"""Layers of Table 1, and their time, sequential operations and path lengths."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import KerasTensor, ops

from t2t_repro.features.reproduction.paper_tables import (
    CONTIGUOUS,
    CONVOLUTIONAL,
    RECURRENT,
    RESTRICTED,
    SELF_ATTENTION,
    SEPARABLE,
    LayerOrders,
)
from t2t_repro.layers.attention import BlockedAttention, MultiHeadAttention

Layer = Callable[[KerasTensor], KerasTensor]

KERNEL_SIZE = 3  # k of Table 1, and the factor between dilations of a stack
NEIGHBOURHOOD = 31  # r of Table 1
WIDTH_OF_LENGTHS = 64  # d while n grows


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes at which a layer is timed.

    The term that Table 1 names must be the largest. Therefore n is much larger than d
    while n grows and, for n^2 d, also while d grows. A pass takes at least
    milliseconds, so that the cost of starting operations is negligible.

    Attributes:
        lengths: Values of n, at d = `WIDTH_OF_LENGTHS`.
        widths: Values of d.
        length_of_widths: n while d grows.
    """

    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    length_of_widths: int


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
    layer: type[MultiHeadAttention], width: int, neighbourhood: int = 0
) -> Layer:
    # One head: Table 1's d is the whole width.
    attention = layer(
        hidden_size=width, num_heads=1, attention_neighbourhood=neighbourhood
    )
    return lambda x: attention(x, x)


def _attention(width: int) -> Layer:
    return _self_attention(MultiHeadAttention, width)


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

REPETITIONS = 5
DEPTH_LENGTHS = (8, 16, 32, 64)
PATH_LENGTHS = (9, 27, 81)
_SMALL_WIDTH = 4


@dataclasses.dataclass(frozen=True)
class Measured:
    """Measurements of a layer.

    Attributes:
        seconds_by_length: Seconds of a forward and backward pass by n, at
            `WIDTH_OF_LENGTHS`.
        seconds_by_width: Seconds of a forward and backward pass by d.
        length_exponent: Slope of log(seconds) over log(n).
        width_exponent: Slope of log(seconds) over log(d).
        sequential: Number of operations on the longest path through the layer, by n.
            Every iteration of a loop counts.
        paths: Number of hops between the two positions farthest apart, by n.
    """

    seconds_by_length: Mapping[int, float]
    seconds_by_width: Mapping[int, float]
    length_exponent: float
    width_exponent: float
    sequential: Mapping[int, int]
    paths: Mapping[int, int]


def measure(kind: SequenceLayer) -> Measured:
    """Measure a layer."""
    sizes = kind.sizes
    by_length = {n: _seconds(kind, n, WIDTH_OF_LENGTHS) for n in sizes.lengths}
    by_width = {d: _seconds(kind, sizes.length_of_widths, d) for d in sizes.widths}
    return Measured(
        seconds_by_length=by_length,
        seconds_by_width=by_width,
        length_exponent=exponent(by_length),
        width_exponent=exponent(by_width),
        sequential={n: sequential_operations(kind, n) for n in DEPTH_LENGTHS},
        paths={n: longest_path(kind, n) for n in PATH_LENGTHS},
    )


def exponent(values: Mapping[int, float]) -> float:
    """Fit value = c size^e by least squares of the logarithms; return e."""
    sizes = np.log(list(values))
    return float(np.polyfit(sizes, np.log(list(values.values())), 1)[0])


def _seconds(kind: SequenceLayer, length: int, width: int) -> float:
    """Return the median seconds of a forward and backward pass of one sequence."""
    x = tf.Variable(tf.random.stateless_normal((1, length, width), seed=(1, 2)))
    layer = kind.make(width)
    layer(x[:, :2])  # creates the weights outside the graph

    @tf.function
    def both_ways() -> Sequence[tf.Tensor]:
        with tf.GradientTape() as tape:
            y = layer(tf.convert_to_tensor(x))
            loss = tf.reduce_sum(y * y)
        weights = [v for v in tape.watched_variables() if v is not x]
        return tape.gradient(loss, [x, *weights])

    both_ways()
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        for gradient in both_ways():
            gradient.numpy()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def sequential_operations(kind: SequenceLayer, length: int) -> int:
    """Count the operations on the longest path from input to output.

    Args:
        kind: Kind of layer; a recurrent one is unrolled.
        length: Number of positions.
    """
    layer = kind.make(_SMALL_WIDTH)
    if isinstance(layer, keras.layers.RNN):
        layer.unroll = True
    layer(tf.zeros((1, length, _SMALL_WIDTH)))
    graph = (
        tf.function(layer)
        .get_concrete_function(tf.TensorSpec((1, length, _SMALL_WIDTH)))
        .graph
    )
    depths: dict[str, int] = {graph.inputs[0].op.name: 0}
    for operation in graph.get_operations():
        below = [depths[t.op.name] for t in operation.inputs if t.op.name in depths]
        if below:
            depths.setdefault(operation.name, 1 + max(below))
    return depths[graph.outputs[0].op.name]


def longest_path(kind: SequenceLayer, length: int) -> int:
    """Count the hops between the two positions farthest apart.

    A hop connects two positions if its gradient between them is not zero. Pairs that no
    number of hops connects, as in a recurrent layer backwards, do not count.

    Args:
        kind: Kind of layer.
        length: Number of positions.
    """
    reached = np.eye(length, dtype=bool)
    connected = reached
    for number in range(length):
        if number == 0 or kind.hops_differ:
            connected = _connections(kind.hop(_SMALL_WIDTH, length, number), length)
        after = reached @ connected | reached
        if (after == reached).all() and (reached.all() or not kind.hops_differ):
            return number
        reached = after
    return length


def _connections(hop: Layer, length: int) -> np.ndarray:
    """Return which positions a hop connects, bool `[from, to]`."""
    x = tf.random.stateless_normal((1, length, _SMALL_WIDTH), seed=(3, 4))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        # A weighted sum, so that the components of a position do not cancel out.
        weights = tf.random.stateless_normal((_SMALL_WIDTH,), seed=(5, 6))
        y = tf.reduce_sum(hop(x)[0] * weights, axis=-1)
    gradients = tape.jacobian(y, x, experimental_use_pfor=False)  # [to, 1, from, width]
    return np.abs(gradients.numpy()[:, 0]).max(axis=-1).T > 0
