from __future__ import annotations

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.cluster import (
    make_strategy,
)
from t2t_repro.training.optimizer import (
    learning_rates_of,
    make_branch_schedule,
    make_optimizer,
    make_schedule,
)
from t2t_repro.training.step import StepOptions, make_train_step, should_use_xla
from tests.support.tiny_model import VOCAB_SIZE, padded, random_sentences


@pytest.fixture(scope="module")
def base():
    return catalogue.hparams("transformer_base")


def test_one_device_needs_no_strategy():
    assert make_strategy(1).num_replicas_in_sync == 1


def test_replicas_requested_too_late_are_a_user_error():
    tf.constant(0)
    with pytest.raises(UserError, match="cannot make 2 CPU replicas"):
        make_strategy(2)


def test_xla_is_used_with_one_replica():
    assert should_use_xla(tf.distribute.get_strategy())


def test_adam_has_the_papers_values(base):
    optimizer = make_optimizer(base)
    values = (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon)
    assert values == (0.9, 0.98, 1e-9)


# All values differ from the set's and from each other.
DISTINCT = {
    "hidden_size": 96,
    "num_heads": 8,
    "num_encoder_layers": 5,
    "num_decoder_layers": 3,
    "learning_rate_schedule": "constant*linear_decay*rsqrt_decay",
    "learning_rate_constant": 2.5,
    "learning_rate_warmup_steps": 700,
    "learning_rate_decay_steps": 1_200,
    "branch_learning_rate_warmup_steps": 30,
    "branch_frozen_after_steps": 900,
    "branch_learning_rate_constant": 1.5,
    "branched_attention": "split",
    "optimizer_adam_beta1": 0.8,
    "optimizer_adam_beta2": 0.95,
    "optimizer_adam_epsilon": 1e-7,
}


@pytest.mark.parametrize("branched", ["none", "split"])
def test_every_adam_has_the_values_of_the_hparams(base, branched):
    hparams = base.replace(**DISTINCT | {"branched_attention": branched})
    optimizer = make_optimizer(hparams, 5_500)
    for adam in getattr(optimizer, "optimizers", [optimizer]):
        assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.8, 0.95, 1e-7)


def test_the_schedule_has_the_values_of_the_hparams(base):
    assert make_schedule(base.replace(**DISTINCT), 5_500).get_config() == {
        "factors": "constant*linear_decay*rsqrt_decay",
        "constant": 2.5,
        "warmup_steps": 700,
        "hidden_size": 96,
        "decay_steps": 1_200,
        "train_steps": 5_500,
    }


@pytest.mark.parametrize("layers", [(5, 3), (3, 5)])
def test_the_branch_schedule_has_the_values_of_the_hparams(base, layers):
    names = ("num_encoder_layers", "num_decoder_layers")
    stacks = dict(zip(names, layers, strict=True))
    schedule = make_branch_schedule(base.replace(**DISTINCT | stacks))
    assert schedule.after_steps == 900
    assert schedule.schedule.get_config() == {
        "factors": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        "constant": 1.5 * 5**0.5,
        "warmup_steps": 30,
        "hidden_size": 96,
        "decay_steps": 1,
        "train_steps": 0,
    }


def test_the_learning_rate_falls_to_zero_at_the_end_of_the_training(base):
    schedule = f"{base.learning_rate_schedule}*linear_decay"
    changes = {"learning_rate_schedule": schedule, "learning_rate_decay_steps": 40}
    optimizers = make_optimizer(base.replace(**changes), 100), make_optimizer(base)
    for optimizer in optimizers:
        optimizer.build([keras.Variable([0.0])])
    for done, share in ((0, 1), (60, 1), (61, 39 / 40), (99, 1 / 40), (120, 0)):
        for optimizer in optimizers:
            optimizer.iterations.assign(done)
        decayed, constant = (float(o.learning_rate.numpy()) for o in optimizers)
        assert decayed == pytest.approx(share * constant)


def test_the_learning_rate_follows_the_schedule(base):
    optimizer = make_optimizer(base)
    optimizer.build([keras.Variable([0.0])])
    rates = []
    for done in (0, 3999, 15999):
        optimizer.iterations.assign(done)
        rates.append(float(optimizer.learning_rate.numpy()))
    # equation (3) at steps 1, 4,000 and 16,000
    expected = [512**-0.5 * min(s**-0.5, s * 4000**-1.5) for s in (1, 4000, 16000)]
    assert rates == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("dtype", "scaled"), [("float32", False), ("bfloat16", False), ("float16", True)]
)
def test_only_float16_has_its_loss_scaled(base, dtype, scaled):
    optimizer = make_optimizer(base.replace(activation_dtype=dtype))
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer) == scaled


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_names_in_checkpoints_do_not_depend_on_earlier_objects(base, dtype):
    paths = []
    for _ in range(2):
        optimizer = make_optimizer(base.replace(activation_dtype=dtype))
        optimizer.build([keras.Variable([0.0], name="weight")])
        paths.append([variable.path for variable in optimizer.variables])
    assert paths[0] == paths[1]
    assert len(set(paths[0])) == len(paths[0])


WEIGHTED = {"branched_attention": "split", "branch_frozen_after_steps": 3}


def weighted_step(base, dtype="float32", **changes):
    """Make a tiny Weighted Transformer, its optimizer and its training step."""
    small = {
        "hidden_size": 8,
        "filter_size": 16,
        "num_heads": 4,
        "num_hidden_layers": 1,
        "learning_rate_warmup_steps": 2,
        "branch_learning_rate_warmup_steps": 1,
        "activation_dtype": dtype,
    }
    hparams = base.replace(**(small | WEIGHTED | changes))
    keras.utils.set_random_seed(1)
    model = Transformer.from_hparams(hparams, VOCAB_SIZE, VOCAB_SIZE)
    optimizer = make_optimizer(hparams)
    optimizer.build(model.trainable_variables)
    options = StepOptions(label_smoothing=0.1)
    step = make_train_step(model, optimizer, tf.distribute.get_strategy(), options)
    return step, model, optimizer


def branch_values(model):
    names = ("kappa", "alpha")
    return np.array([v.numpy() for v in model.trainable_variables if v.name in names])


BATCH = {
    "inputs": tf.constant(padded(random_sentences(1, [5, 3, 7]))),
    "targets": tf.constant(padded(random_sentences(2, [4, 6, 2]))),
}


class Training:
    """Five updates of a tiny Weighted Transformer.

    Attributes:
        first: Results of the first update.
        values: Weights of branches at first and after every update.
        others: A matrix at first and after every update.
    """

    def __init__(self, base, dtype):
        step, model, _ = weighted_step(base, dtype)
        self.values = [branch_values(model)]
        self.others = [model.encoder.get_weights()[0]]
        results = []
        for _ in range(5):
            results.append(step(BATCH))
            self.values.append(branch_values(model))
            self.others.append(model.encoder.get_weights()[0])
        self.first = {name: float(value) for name, value in results[0].items()}


@pytest.fixture(scope="module")
def trained(base):
    """Return a function that trains once with each dtype."""
    return functools.cache(lambda dtype: Training(base, dtype))


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float16", pytest.param("bfloat16", marks=pytest.mark.slow)],
)
def test_branch_weights_move_on_the_simplex_until_they_are_frozen(trained, dtype):
    values, others = trained(dtype).values, trained(dtype).others
    for value in values:
        np.testing.assert_allclose(value.sum(axis=-1), 1.0, atol=1e-5)
        assert value.min() >= 0.0
    moved = [not np.allclose(b, a, atol=1e-6) for a, b in itertools.pairwise(values)]
    assert moved == [True, True, True, False, False]
    assert not any(np.array_equal(b, a) for a, b in itertools.pairwise(others))


def test_branch_weights_with_a_rate_of_zero_never_change(base):
    frozen = {"branch_learning_rate_constant": 0.0, "branch_weights_init": "uniform"}
    step, model, _ = weighted_step(base, **frozen)
    before = branch_values(model)
    step(BATCH)
    np.testing.assert_array_equal(branch_values(model), before)
    np.testing.assert_allclose(before, 1 / np.shape(before)[-1])


def test_branch_weights_have_the_papers_schedule(base):
    hparams = base.replace(**WEIGHTED | {"branch_frozen_after_steps": 50_000})
    schedule = make_branch_schedule(hparams)
    for t in (1, 100, 400, 5_000, 50_000):
        expected = (512 / 6) ** -0.5 * min(t**-0.5, t * 400**-1.5)
        assert float(schedule(t - 1)) == pytest.approx(expected, rel=1e-5)
    assert float(schedule(50_000)) == 0.0
    peak = float(schedule(399)) / 6.99e-4
    assert peak == pytest.approx(np.sqrt(10 * 6), rel=1e-2)


def test_the_schedule_of_branches_counts_the_larger_number_of_layers(base):
    stacks = {"num_encoder_layers": 2, "num_decoder_layers": 4}
    plain, other = (
        float(make_branch_schedule(base.replace(**WEIGHTED | changes))(0))
        for changes in ({}, stacks)
    )
    assert other / plain == pytest.approx((4 / 6) ** 0.5, rel=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_both_learning_rates_of_a_weighted_transformer_are_reported(trained, dtype):
    results = trained(dtype).first
    # d^-0.5 t w^-1.5 with d = 8, t = 1, and warm-ups of 2 steps and of 1 step.
    assert results["learning_rate"] == pytest.approx(8**-0.5 * 2**-1.5)
    assert results["branch_learning_rate"] == pytest.approx(8**-0.5)


def test_a_plain_transformer_has_one_learning_rate(base):
    rates = learning_rates_of(make_optimizer(base))
    assert list(rates) == ["learning_rate"]
