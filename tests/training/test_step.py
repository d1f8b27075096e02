from __future__ import annotations

import functools
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.packing import pack_pairs
from t2t_repro.data.pipeline import BATCH_SIGNATURE
from t2t_repro.layers.residual import Dropout
from t2t_repro.training.losses import token_losses
from t2t_repro.training.recovery import UpdateGuard
from t2t_repro.training.step import (
    PRODUCTS,
    StepOptions,
    all_but_products,
    make_train_step,
)
from tests.support.tiny_batch import BATCH
from tests.support.tiny_model import padded, random_sentences, tiny_transformer
from tests.support.tiny_training import Bigrams, weights_of

LEARNING_RATE = 0.1
OPTIONS = StepOptions(label_smoothing=0.1)
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1, "name": "transformer"}


def step_and_model(
    options=OPTIONS, guard=None, *, packed=False, model=None, optimizer=None
):
    """Make a plain gradient-descent step, so that weights show the gradient."""
    model = model or tiny_transformer(**ONE_LAYER)
    optimizer = optimizer or keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    step = make_train_step(model, optimizer, strategy, options, guard, packed=packed)
    return step, model


def dropping_transformer(dropout):
    """Make a model whose masks of dropout are always the same ones."""
    keras.utils.set_random_seed(1)
    return tiny_transformer(**ONE_LAYER, layer_prepostprocess_dropout=dropout)


def tiny_bigrams(dropout):
    """Make a model that XLA compiles quickly, with this package's dropout."""
    keras.utils.set_random_seed(1)
    model = Bigrams(0.0)
    model.dropout = Dropout(dropout, name="dropout")
    return model


class FirstUpdate:
    """A step that is traced once and makes the first update on any batch."""

    def __init__(self, *arguments, **options):
        self.step, self.model = step_and_model(*arguments, **options)
        self.before = weights_of(self.model)
        self.initial = [v.numpy() for v in self.model.variables]

    def __call__(self, batch):
        """Return the results of the update, and the weights after it."""
        for variable, value in zip(self.model.variables, self.initial, strict=True):
            variable.assign(value)
        results = {name: float(value) for name, value in self.step(batch).items()}
        return results, weights_of(self.model)


def assert_same_weights(found, expected):
    assert found.keys() == expected.keys()
    for path, weights in found.items():
        np.testing.assert_allclose(weights, expected[path], atol=1e-6)


def expected_loss_and_gradients(model, batch):
    with tf.GradientTape() as tape:
        smoothed, nll = token_losses(batch["targets"], model(batch), 0.1)
        tokens = float(np.count_nonzero(batch["targets"]))
        loss = tf.reduce_sum(smoothed) / tokens
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    dense = [tf.convert_to_tensor(g).numpy() for g in gradients]
    paths = (v.path for v in variables)
    return (
        float(loss),
        float(tf.reduce_sum(nll)) / tokens,
        dict(zip(paths, dense, strict=True)),
    )


@pytest.fixture(scope="module")
def plain():
    return FirstUpdate()


@pytest.fixture(scope="module")
def first_step(plain):
    """Return the weights before and after a step, its expected and its real results."""
    expected = expected_loss_and_gradients(plain.model, BATCH)
    results, after = plain(BATCH)
    return plain.before, after, expected, results


def test_a_step_returns_means_over_real_target_tokens_norm_rate_and_counts(first_step):
    *_, (loss, nll, gradients), results = first_step
    squares = (np.square(g.astype(np.float64)).sum() for g in gradients.values())
    assert results == {
        "loss": pytest.approx(loss, rel=1e-6),
        "nll": pytest.approx(nll, rel=1e-6),  # without smoothing
        "gradient_norm": pytest.approx(np.sqrt(sum(squares)), rel=1e-5),
        "learning_rate": pytest.approx(LEARNING_RATE),
        "source_tokens": 5 + 3 + 7,
        "target_tokens": 4 + 6 + 2,
        "positions": 3 * 7 + 3 * 6,
    }


def test_the_update_follows_the_gradient_of_the_loss(first_step):
    before, after, (_, _, gradients), _ = first_step
    expected = {
        path: before[path] - LEARNING_RATE * gradient
        for path, gradient in gradients.items()
    }
    assert_same_weights(after, expected)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("mixed_bfloat16", 0.1), ("mixed_float16", 0.02)]
)
def test_half_precision_takes_the_step_of_float32(first_step, dtype, tolerance):
    before, after, _, expected = first_step
    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    if dtype == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model = tiny_transformer(**ONE_LAYER, dtype=dtype)
    step, _ = step_and_model(model=model, optimizer=optimizer)
    results = {name: float(value) for name, value in step(BATCH).items()}
    assert results["loss"] == pytest.approx(expected["loss"], rel=tolerance)
    norm = expected["gradient_norm"]
    assert results["gradient_norm"] == pytest.approx(norm, rel=tolerance)
    found = weights_of(model)
    squared_error = sum(np.square(found[p] - after[p]).sum() for p in after)
    squared_step = sum(np.square(after[p] - before[p]).sum() for p in after)
    assert np.sqrt(squared_error / squared_step) < tolerance


def test_pairs_in_one_row_make_the_update_of_a_row_each(first_step):
    sides = [
        [row[: np.count_nonzero(row)] for row in BATCH[side].numpy()]
        for side in ("inputs", "targets")
    ]
    packed = pack_pairs(*sides, packed_lengths=(20, 20), seed=0)
    assert len(packed["inputs"]) < len(BATCH["inputs"])
    step, model = step_and_model(packed=True)
    results = step({name: tf.constant(x) for name, x in packed.items()})
    assert_same_weights(weights_of(model), first_step[1])
    for name in ("loss", "nll", "target_tokens", "source_tokens"):
        assert float(results[name]) == pytest.approx(first_step[3][name], rel=1e-5)
    assert float(results["positions"]) == 2 * packed["inputs"].size


@pytest.mark.parametrize("padding", [[[0, 2], [0, 0]], [[0, 0], [0, 3]]])
def test_rows_and_columns_of_padding_change_no_update(plain, first_step, padding):
    filled = {side: tf.pad(ids, padding) for side, ids in BATCH.items()}
    assert_same_weights(plain(filled)[1], first_step[1])


def test_a_batch_of_padding_alone_changes_nothing(plain):
    padding = {side: tf.zeros_like(ids) for side, ids in BATCH.items()}
    results, after = plain(padding)
    assert results["loss"] == 0.0
    for path, weights in after.items():
        np.testing.assert_array_equal(weights, plain.before[path])


# The gradient of few tokens is longer than the mean of many.
FEW = {side: ids[2:] for side, ids in BATCH.items()}


def test_clipping_shortens_a_long_gradient_to_the_limit():
    """The norm is reported as it was before; a shorter gradient is left alone."""
    plain = FirstUpdate(model=tiny_bigrams(0.0))
    results, unlimited = plain(BATCH)
    norms = [plain(FEW)[0]["gradient_norm"], results["gradient_norm"]]
    limit = float(np.sqrt(norms[0] * norms[1]))
    assert norms[1] < 0.9 * limit
    options = StepOptions(0.1, clip_grad_norm=limit)
    update = FirstUpdate(options, model=tiny_bigrams(0.0))
    results, after = update(FEW)
    moved = sum(np.square(w - update.before[p]).sum() for p, w in after.items())
    assert np.sqrt(moved) == pytest.approx(LEARNING_RATE * limit, rel=1e-4)
    assert results["gradient_norm"] == pytest.approx(norms[0], rel=1e-5)
    assert_same_weights(update(BATCH)[1], unlimited)


def test_a_step_compiled_by_xla_makes_the_same_update(first_step):
    step, model = step_and_model(StepOptions(0.1, jit_compile=True))
    step(BATCH)
    assert_same_weights(weights_of(model), first_step[1])


def test_dropout_is_active_and_new_in_every_step():
    dropping = FirstUpdate(model=tiny_bigrams(0.5))
    losses = {dropping(BATCH)[0]["loss"]}
    for _ in range(2):
        # The states of dropout stay as the last step left them.
        for variable in dropping.model.trainable_variables:
            variable.assign(dropping.before[variable.path])
        losses.add(float(dropping.step(BATCH)["loss"]))
    assert len(losses) == 3


# 6 rows with 31 target tokens: 15, 12 and 4 in micro-batches of 2 rows
UNEVEN = {
    "inputs": tf.constant(padded(random_sentences(1, [5, 3, 7, 2, 4, 6]))),
    "targets": tf.constant(padded(random_sentences(2, [8, 7, 5, 7, 2, 2]))),
}


MODELS = {"transformer": dropping_transformer, "bigrams": tiny_bigrams}
LIMITS = {"transformer": 0.5, "bigrams": 0.1}


@functools.cache
def update_of_all_rows(model):
    update = FirstUpdate(StepOptions(0.1, LIMITS[model]), model=MODELS[model](0.0))
    results, weights = update(UNEVEN)
    assert results["gradient_norm"] > 1.1 * LIMITS[model]
    return results, weights


@pytest.mark.parametrize(
    ("micro_batches", "jit_compile", "model"),
    [
        (3, False, "bigrams"),
        (6, False, "bigrams"),
        (2, True, "bigrams"),
        pytest.param(2, True, "transformer", marks=pytest.mark.slow),
    ],
)
def test_micro_batches_make_the_update_of_all_rows(micro_batches, jit_compile, model):
    expected, weights = update_of_all_rows(model)
    options = StepOptions(0.1, LIMITS[model], jit_compile, micro_batches)
    results, found = FirstUpdate(options, model=MODELS[model](0.0))(UNEVEN)
    assert results.keys() == expected.keys()
    for name, value in expected.items():
        assert results[name] == pytest.approx(value, rel=1e-5), name
    assert_same_weights(found, weights)


def test_a_guard_limits_the_loss_of_all_micro_batches_together():
    options = StepOptions(0.1, micro_batches=3)
    step, model = step_and_model(options, UpdateGuard(), model=tiny_bigrams(0.0))
    before = weights_of(model)
    assert float(step(UNEVEN)["skipped"]) == 0.0
    moved = weights_of(model)
    assert any((moved[path] != before[path]).any() for path in before)
    model.trainable_variables[0].assign(
        np.full(model.trainable_variables[0].shape, np.nan)
    )
    broken = weights_of(model)
    assert float(step(UNEVEN)["skipped"]) == 1.0
    for path, weights in weights_of(model).items():
        np.testing.assert_array_equal(weights, broken[path])


def test_loss_scaling_changes_neither_norm_nor_update():
    expected, weights = FirstUpdate(model=tiny_bigrams(0.0))(UNEVEN)
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(LEARNING_RATE), initial_scale=2.0**10
    )
    options = StepOptions(0.1, micro_batches=3)
    step, model = step_and_model(options, model=tiny_bigrams(0.0), optimizer=optimizer)
    norm = expected["gradient_norm"]
    assert float(step(UNEVEN)["gradient_norm"]) == pytest.approx(norm, rel=1e-5)
    assert_same_weights(weights_of(model), weights)


@pytest.mark.parametrize("jit_compile", [True, False])
def test_dropout_differs_between_micro_batches(jit_compile):
    # Equal rows would have equal gradients: the whole would be as with one of them.
    row = {side: ids[:1] for side, ids in UNEVEN.items()}
    rows = {side: tf.repeat(ids, 4, axis=0) for side, ids in row.items()}
    one = FirstUpdate(model=tiny_bigrams(0.5))
    alone = one(row)[0]["loss"]
    options = StepOptions(0.1, micro_batches=4, jit_compile=jit_compile)
    whole = FirstUpdate(options, model=tiny_bigrams(0.5))
    for found, expected in zip(whole.model.variables, one.initial, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert whole(rows)[0]["loss"] != pytest.approx(alone, rel=1e-3)


def functions_of(concrete):
    """Map traced functions to kinds of operations and whether XLA compiles them."""
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
