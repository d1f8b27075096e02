"""Let XLA compile a function but for its matrix products."""

from __future__ import annotations

import contextlib

import tensorflow as tf

PRODUCTS = frozenset({"BatchMatMulV2", "BatchMatMulV3", "Einsum", "MatMul"})


def all_but_products() -> contextlib.AbstractContextManager[None]:
    """Return a scope whose operations XLA compiles, except matrix products.

    On a CPU, XLA's products are no faster in bfloat16 than in float32. TensorFlow's
    call oneDNN, which uses the processor's instructions for bfloat16. Between them,
    XLA fuses what TensorFlow computes operation by operation. Where
    `processor.multiplies_bfloat16` is false, this is slower than compiling the
    products as well (docs/training.md).

    The scope does not reach into the bodies of `tf.cond` and `tf.while_loop`. These
    need scopes of their own.
    """
    return tf.xla.experimental.jit_scope(
        compile_ops=lambda node: node.op not in PRODUCTS
    )
