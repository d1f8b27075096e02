"""Half precision: what stays in float32, and how the loss is scaled."""

from __future__ import annotations

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BATCH_SIGNATURE
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.losses import token_losses
from t2t_repro.training.optimizer import has_overflowed, make_optimizer
from t2t_repro.training.recovery import UpdateGuard
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.training.training_state import TrainingCheckpoints
from tests.support.eager import train_eagerly
from tests.support.tiny_batch import BATCH
from tests.support.tiny_model import VOCAB_SIZE
from tests.support.tiny_training import tiny_settings

HALF = ("bfloat16", "float16")
SMALL = {
    "hidden_size": 8,
    "filter_size": 16,
    "num_heads": 2,
    "num_hidden_layers": 1,
    "learning_rate_warmup_steps": 2,
}


def model_and_optimizer(dtype, **changes):
    hparams = catalogue.hparams("transformer_base").replace(
        **(SMALL | {"activation_dtype": dtype} | changes)
    )
    keras.utils.set_random_seed(1)
    model = Transformer.from_hparams(hparams, VOCAB_SIZE, VOCAB_SIZE)
    optimizer = make_optimizer(hparams)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def make_step(model, optimizer, guard=None, limit=5.0):
    options = StepOptions(0.1, clip_grad_norm=limit)
    strategy = tf.distribute.get_strategy()
    return make_train_step(model, optimizer, strategy, options, guard)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(
    "changes", [{}, {"branched_attention": "split", "ema_decay": 0.9}]
)
def test_weights_and_the_values_of_the_optimizer_are_float32(dtype, changes):
    model, optimizer = model_and_optimizer(dtype, **changes)
    assert model.compute_dtype == dtype
    dtypes = {v.dtype for v in model.trainable_variables}
    assert dtypes == {"float32"}
    # Numbers of steps are integers.
    assert {v.dtype for v in optimizer.variables} <= {"float32", "int64", "int32"}
    slots = [v for v in optimizer.variables if v.shape != ()]
    assert len(slots) >= 2 * len(model.trainable_variables)
    assert {v.dtype for v in slots} == {"float32"}


# Operations of softmax, cross-entropy, normalization and Adam.
SENSITIVE = {
    *("Softmax", "LogSoftmax", "Exp", "Log", "Rsqrt", "Sqrt", "Mean"),
    *("SquaredDifference", "AssignVariableOp", "AssignAddVariableOp"),
}


def operations(function):
    """Return the name and the dtype of every operation that has one."""
    graph = function.graph.as_graph_def()
    nodes = itertools.chain(graph.node, *(f.node_def for f in graph.library.function))
    for node in nodes:
        for name in ("T", "dtype"):
            if name in node.attr and node.attr[name].type:
                yield node.op, tf.dtypes.as_dtype(node.attr[name].type).name


def test_a_step_computes_softmax_loss_and_normalization_in_float32():
    dtype, restricted = "bfloat16", {"self_attention_type": "restricted"}
    changes = restricted | {"attention_neighbourhood": 3}
    step = make_step(*model_and_optimizer(dtype, **changes))
    found = set(operations(step.get_concrete_function(BATCH_SIGNATURE)))
    assert ("Softmax", "float32") in found
    assert ("Exp", "float32") in found
    assert {name for name, _ in found} & {"Rsqrt", "Mean"}
    # Products are in half precision, or the test would show nothing.
    assert {name for name, kind in found if kind == dtype} & {"MatMul", "Einsum"}
    assert not [
        (name, kind) for name, kind in found if {name} & SENSITIVE and kind == dtype
    ]


@pytest.mark.parametrize("dtype", HALF)
def test_statistics_of_layer_normalization_are_float32(dtype):
    layer = ResidualConnection(hidden_size=6, norm="pre", dtype=f"mixed_{dtype}")
    layer.build()
    # The variance of 90,000 is above float16's largest number. The mean of bfloat16's
    # multiples of 2 needs more than its 8 bits.
    x = np.array([[[300.0, -300.0, 300.0, -300.0, 298.0, -302.0]]])
    x = tf.cast(tf.cast(x, dtype), "float64").numpy()
    expected = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
    found = layer.prepare(tf.cast(x, dtype))
    assert found.dtype == dtype
    tolerance = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    np.testing.assert_allclose(tf.cast(found, "float32"), expected, rtol=tolerance)


def float32_gradient_norm():
    model, _ = model_and_optimizer("float32", layer_prepostprocess_dropout=0.0)
    with tf.GradientTape() as tape:
        losses, _ = token_losses(BATCH["targets"], model(BATCH, training=True), 0.1)
        loss = tf.reduce_sum(losses) / np.count_nonzero(BATCH["targets"])
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return np.sqrt(sum(np.square(tf.convert_to_tensor(g)).sum() for g in gradients))


@pytest.mark.parametrize("limit", [0.05, 5.0])
def test_float16_reports_and_clips_the_norm_of_float32(monkeypatch, limit):
    """Adam's first moment after one update is 0.1 of the gradient, as beta1 is 0.9."""
    train_eagerly(monkeypatch)
    norm = float32_gradient_norm()
    model, optimizer = model_and_optimizer("float16", layer_prepostprocess_dropout=0.0)
    optimizer.dynamic_scale.assign(1024.0)
    assert 0.05 < norm < 5.0 < 1024.0 * norm
    results = make_step(model, optimizer, limit=limit)(BATCH)
    assert float(results["gradient_norm"]) == pytest.approx(norm, rel=0.01)
    adam = optimizer.inner_optimizer
    moments = [v.numpy() for v in adam.variables if "momentum" in v.path]
    applied = np.sqrt(sum(np.square(moment).sum() for moment in moments))
    assert applied == pytest.approx(0.1 * min(norm, limit), rel=0.01)


def test_an_overflow_is_an_infinite_gradient_that_was_scaled():
    scaled = {"gradient_norm": math.nan, "loss_scale": 8.0}
    assert has_overflowed(scaled | {"skipped": 0.0})
    assert not has_overflowed(scaled | {"skipped": 1.0})
    assert not has_overflowed(scaled | {"gradient_norm": 1.0})


FIRST_SCALE, GROWTH, UPDATES = 2.0**24, 4, 14


class Run:
    """A float16 training whose loss scale is much too high at first."""

    def __init__(self, folder):
        self.model, self.optimizer = model_and_optimizer("float16")
        self.optimizer.dynamic_growth_steps = GROWTH
        self.optimizer.dynamic_scale.assign(FIRST_SCALE)
        self.guard = UpdateGuard(spike_factor=10.0)
        self.step = make_step(self.model, self.optimizer, self.guard)
        settings = tiny_settings(folder, keep_checkpoint_max=1)
        self.checkpoints = TrainingCheckpoints(
            settings, self.model, self.optimizer, self.guard
        )
        self.results = []

    def values(self):
        variables = (*self.model.weights, *self.optimizer.variables)
        return [v.numpy() for v in variables]

    def weights(self):
        adam = self.optimizer.inner_optimizer
        return [v.numpy() for v in (*self.model.trainable_variables, *adam.variables)]

    def train(self, updates):
        for _ in range(updates):
            before = self.weights()
            found = {k: float(v) for k, v in self.step(BATCH).items()}
            same = all(map(np.array_equal, before, self.weights()))
            self.results.append(found | {"unchanged": same})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("float16"))
    while int(run.optimizer.step_counter) < 2:
        run.train(1)
    run.checkpoints.save(len(run.results))
    run.train(UPDATES - len(run.results))
    return run


def test_the_scale_halves_on_overflow_and_doubles_after_enough_good_updates(run):
    scale, good, events = FIRST_SCALE, 0, []
    for result in run.results:
        assert result["loss_scale"] == scale
        if has_overflowed(result):
            scale, good = scale / 2, 0
            events.append("halved")
        elif good == GROWTH - 1:
            scale, good = scale * 2, 0
            events.append("doubled")
        else:
            good += 1
    assert float(run.optimizer.dynamic_scale) == scale
    assert events[:3] == ["halved"] * 3
    assert "doubled" in events


def test_an_overflow_changes_no_weight_and_no_value_of_adam(run):
    unchanged = [result["unchanged"] for result in run.results]
    assert unchanged == [has_overflowed(result) for result in run.results]
    # The schedule of the learning rate does not advance either.
    iterations = run.optimizer.inner_optimizer.iterations
    assert int(iterations) == unchanged.count(False) > 0


def test_an_overflow_is_no_bad_update_for_the_guard(run):
    assert all(math.isfinite(result["loss"]) for result in run.results)
    assert [result["skipped"] for result in run.results] == [0.0] * UPDATES
    assert (int(run.guard.total), int(run.guard.in_row)) == (0, 0)


def test_a_resumed_run_continues_with_the_scale_and_its_count(run):
    resumed = Run(run.checkpoints.output_dir)
    step = step_of(resumed.checkpoints.restore_latest())
    assert int(resumed.optimizer.step_counter) == 2
    assert float(resumed.optimizer.dynamic_scale) < FIRST_SCALE
    resumed.train(UPDATES - step)
    assert resumed.results == run.results[step:]
    for ours, theirs in zip(resumed.values(), run.values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
