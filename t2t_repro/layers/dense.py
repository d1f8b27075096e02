"""A dense layer that computes one product of two matrices, and the shapes for it."""

from __future__ import annotations

import keras
from keras import KerasTensor, ops


def shape_of(x: KerasTensor) -> tuple[int | KerasTensor, ...]:
    """Return the shape of a tensor, for `ops.reshape`.

    If only one size is unknown, it is -1, and TensorFlow's graph needs no operation to
    find it. During a search, only the number of sentences is unknown.
    """
    if sum(size is None for size in x.shape) == 1:
        return tuple(-1 if size is None else size for size in x.shape)
    return tuple(ops.shape(x))


@keras.saving.register_keras_serializable(package="t2t_repro")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, which multiplies inputs of any rank as one matrix.

    On TensorFlow, Keras's own layer contracts an input of rank 3 with `tf.tensordot`.
    If the batch or the length is unknown, this also transposes the input, by a
    permutation that does not change it, and adds about twenty operations to the graph.

    The arguments are those of `keras.layers.Dense`.

    Example:
    ```python
    dense = Dense(64, use_bias=False)
    assert dense(keras.random.normal((2, 10, 32))).shape == (2, 10, 64)
    ```
    """

    def call(self, inputs: KerasTensor, training: bool | None = None) -> KerasTensor:
        if len(inputs.shape) == 2:
            return super().call(inputs, training)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        outputs = super().call(rows, training)
        return ops.reshape(outputs, (*shape_of(inputs)[:-1], self.units))
