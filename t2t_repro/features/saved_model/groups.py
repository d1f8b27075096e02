"""Rows of any number, computed a few at a time inside a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

RowFunction = Callable[[tf.Tensor], Sequence[tf.Tensor]]


def map_groups(
    function: RowFunction,
    lengths: tf.Tensor,
    group_size: int,
    outputs: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
    """Apply a function to groups of rows, so that memory depends on the group alone.

    Rows of similar length form a group, the longest first. As in `Translator`, the size
    of a group is its number of rows times its longest row.

    Args:
        function: Maps the numbers of the rows of a group, int32 `[group]`, to tensors
            `[group, ...]`.
        lengths: Tokens of each row, at least 1, int32 `[rows]`.
        group_size: Largest size of a group of several rows, in tokens.
        outputs: Shape `[None, ...]` and dtype of each result of `function`.

    Returns:
        The results for all rows, `[rows, ...]`, in the order of `lengths`.
    """
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    results = [
        tf.TensorArray(
            spec.dtype,
            size=0,
            dynamic_size=True,
            infer_shape=False,
            element_shape=spec.shape,
        )
        for spec in outputs
    ]

    def one_group(
        start: tf.Tensor, group: tf.Tensor, results: list[tf.TensorArray]
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.TensorArray]]:
        rows = tf.maximum(group_size // lengths[order[start]], 1)
        chosen = order[start : start + rows]
        values = function(chosen)
        written = [
            array.write(group, value)
            for array, value in zip(results, values, strict=True)
        ]
        return start + tf.size(chosen), group + 1, written

    *_, results = tf.while_loop(
        lambda start, group, results: start < tf.size(order),
        one_group,
        (tf.constant(0), tf.constant(0), results),
        parallel_iterations=1,
    )
    places = tf.math.invert_permutation(order)
    return [tf.gather(array.concat(), places) for array in results]
