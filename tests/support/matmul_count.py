"""Count the multiplications of a TensorFlow graph from the shapes of its products."""

from __future__ import annotations

import math

import tensorflow as tf


def counted_flops(graph: tf.Graph) -> int:
    """Return two operations for every multiplication of the graph's products.

    Args:
        graph: A traced graph whose shapes are static.
    """
    return sum(2 * _multiplications(op) for op in graph.get_operations())


def _multiplications(op: tf.Operation) -> int:
    if op.type == "MatMul":
        rows, columns = op.outputs[0].shape.as_list()
        left = op.inputs[0].shape.as_list()
        inner = left[0] if op.get_attr("transpose_a") else left[1]
        return rows * columns * inner
    if op.type in ("BatchMatMulV2", "BatchMatMul"):
        left = op.inputs[0].shape.as_list()
        inner = left[-2] if op.get_attr("adj_x") else left[-1]
        return math.prod(op.outputs[0].shape.as_list()) * inner
    if op.type == "Einsum":
        equation = op.get_attr("equation").decode()
        sizes: dict[str, int] = {}
        terms = equation.partition("->")[0].split(",")
        for term, tensor in zip(terms, op.inputs, strict=True):
            shape = tensor.shape.as_list()
            leading = "XYZ"[: len(shape) - len(term.replace("...", ""))]
            letters = term.replace("...", leading)
            sizes |= dict(zip(letters, shape, strict=True))
        return math.prod(sizes.values())
    return 0
