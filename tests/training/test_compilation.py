"""XLA compiles what lies between the matrix products."""

from __future__ import annotations

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import BATCH_SIGNATURE
from t2t_repro.training.step import (
    PRODUCTS,
    StepOptions,
    all_but_products,
    make_train_step,
)
from tests.support.tiny_model import tiny_transformer
from tests.support.tiny_training import Bigrams


def functions_of(concrete):
    """Map a traced function, and each function that it calls, to its operations.

    Returns:
        For each function, pairs of an operation's kind and whether XLA compiles it.
    """
    graph = concrete.graph.as_graph_def()
    bodies = {f.signature.name: f.node_def for f in graph.library.function}
    return {
        name: [(node.op, node.attr["_XlaCompile"].b) for node in nodes]
        for name, nodes in {"": graph.node, **bodies}.items()
    }


def kinds(operations, *, compiled):
    return {kind for kind, is_compiled in operations if is_compiled is compiled}


def traced_step(model, **options):
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    step = make_train_step(
        model,
        optimizer,
        tf.distribute.get_strategy(),
        StepOptions(**{"label_smoothing": 0.1, "jit_compile": True, **options}),
    )
    return functions_of(step.get_concrete_function(BATCH_SIGNATURE))


def test_all_but_products_are_compiled_inside_the_scope_only():
    @tf.function
    def function(x):
        with all_but_products():
            y = tf.tanh(tf.matmul(x, x) + tf.einsum("bij,bjk->bik", x, x))
        return tf.exp(y)

    (operations,) = functions_of(
        function.get_concrete_function(tf.TensorSpec([2, 3, 3]))
    ).values()
    assert kinds(operations, compiled=True) == {"AddV2", "Tanh"}
    assert kinds(operations, compiled=False) >= {"BatchMatMulV2", "Exp"}


def test_a_scope_does_not_change_the_values():
    def function(x):
        return tf.nn.softmax(tf.tanh(tf.matmul(x, x)) * 2.0 + 1.0)

    @tf.function
    def scoped(x):
        with all_but_products():
            return function(x)

    x = tf.random.stateless_normal([5, 5], [1, 2])
    np.testing.assert_allclose(scoped(x), function(x), rtol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"micro_batches": 2, "rdrop_weight": 1.0, "rdrop_after_steps": 3}]
)
def test_a_step_compiles_passes_and_update_but_no_product(options):
    model = tiny_transformer(num_encoder_layers=1, num_decoder_layers=1)
    functions = traced_step(model, jit_products=False, **options)
    for name, operations in functions.items():
        compiled = kinds(operations, compiled=True)
        assert not compiled & PRODUCTS, name
        # Layer normalization, its gradient and the softmax.
        if kinds(operations, compiled=False) & PRODUCTS:
            assert compiled >= {"Rsqrt", "Exp", "Sub", "Mul"}, name
    assert "Sqrt" in kinds(functions[""], compiled=True)  # of Adam


@pytest.mark.parametrize("options", [{}, {"jit_compile": False, "jit_products": False}])
def test_no_operation_is_compiled_alone_if_the_step_is_or_if_nothing_is(options):
    for operations in traced_step(Bigrams(0.0), **options).values():
        assert not kinds(operations, compiled=True)


@pytest.mark.parametrize(
    ("replicas", "compiled"), [(1, ["_ReplicaStep"]), (2, ["gradients"])]
)
@pytest.mark.parametrize("jit_compile", [True, False])
@pytest.mark.parametrize("jit_products", [True, False])
def test_xla_compiles_the_step_of_one_replica_or_the_gradients_of_several(
    monkeypatch, replicas, compiled, jit_compile, jit_products
):
    """Sums over replicas cannot be compiled."""
    found = []

    def function(wrapped, *, jit_compile=False, **_):
        if jit_compile:
            found.append(getattr(wrapped, "__name__", type(wrapped).__name__))
        return wrapped

    monkeypatch.setattr(tf, "function", function)
    strategy = SimpleNamespace(num_replicas_in_sync=replicas)
    options = StepOptions(0.1, jit_compile=jit_compile, jit_products=jit_products)
    make_train_step("model", "optimizer", strategy, options)
    assert found == (compiled if jit_compile and jit_products else [])
