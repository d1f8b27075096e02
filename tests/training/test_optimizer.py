"""Schedules, and the optimizers that the hparams describe."""

from __future__ import annotations

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.optimizer import (
    FactorSchedule,
    make_branch_schedule,
    make_optimizer,
)
from t2t_repro.training.step import StepOptions, make_train_step
from tests.support.tiny_batch import BATCH
from tests.support.tiny_model import VOCAB_SIZE


@pytest.fixture(scope="module")
def base():
    return catalogue.hparams("transformer_base")


def rate(schedule, step: int) -> float:
    """Return the rate of update number `step`, counted from 1 as in the paper."""
    return float(schedule(step - 1))


def schedule_of(hparams, train_steps: int = 0):
    config = make_optimizer(hparams, train_steps).get_config()["learning_rate"]
    return keras.saving.deserialize_keras_object(config)


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
    "learning_rate_first_step": 0,
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
    hparams = base.replace(**DISTINCT | {"branched_attention": "none"})
    assert schedule_of(hparams, 5_500).get_config() == {
        "factors": "constant*linear_decay*rsqrt_decay",
        "constant": 2.5,
        "warmup_steps": 700,
        "hidden_size": 96,
        "decay_steps": 1_200,
        "train_steps": 5_500,
        "first_step": 0,
        "frozen_after_steps": 0,
    }


@pytest.mark.parametrize(
    ("factors", "rates"),
    [
        # min(1, s / 10) max(s, 10)^-0.5, and (6 - s) / 4, at s = 0, 1, 2, 5
        ("linear_warmup*rsqrt_decay", [0.0, 0.0316228, 0.0632456, 0.1581139]),
        ("linear_decay", [1.0, 1.0, 1.0, 0.25]),
    ],
)
def test_the_first_update_may_have_number_zero_as_in_tensor2tensor(factors, rates):
    schedule = FactorSchedule(
        factors,
        constant=1.0,
        warmup_steps=10,
        hidden_size=4,
        decay_steps=4,
        train_steps=6,
        first_step=0,
    )
    found = [float(schedule(earlier)) for earlier in (0, 1, 2, 5)]
    assert found == pytest.approx(rates, rel=1e-5)


@pytest.mark.parametrize("layers", [(5, 3), (3, 5)])
def test_the_branch_schedule_has_the_values_of_the_hparams(base, layers):
    names = ("num_encoder_layers", "num_decoder_layers")
    stacks = dict(zip(names, layers, strict=True))
    schedule = make_branch_schedule(base.replace(**DISTINCT | stacks))
    assert schedule.get_config() == {
        "factors": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        "constant": 1.5 * 5**0.5,
        "warmup_steps": 30,
        "hidden_size": 96,
        "decay_steps": 1,
        "train_steps": 0,
        "first_step": 1,
        "frozen_after_steps": 900,
    }


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


class Training:
    """Five updates; the weights are those at first and after every update."""

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


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_branch_weights_move_on_the_simplex_until_they_are_frozen(trained, dtype):
    values, others = trained(dtype).values, trained(dtype).others
    for value in values:
        np.testing.assert_allclose(value.sum(axis=-1), 1.0, atol=1e-5)
        assert value.min() >= 0.0
    moved = [not np.allclose(b, a, atol=1e-6) for a, b in itertools.pairwise(values)]
    assert moved == [True, True, True, False, False]
    assert not any(np.array_equal(b, a) for a, b in itertools.pairwise(others))


def test_branch_weights_have_the_papers_schedule(base):
    hparams = base.replace(**WEIGHTED | {"branch_frozen_after_steps": 50_000})
    schedule = make_branch_schedule(hparams)
    for t in (1, 100, 400, 5_000, 50_000):
        expected = (512 / 6) ** -0.5 * min(t**-0.5, t * 400**-1.5)
        assert float(schedule(t - 1)) == pytest.approx(expected, rel=1e-5)
    assert float(schedule(50_000)) == 0.0
    peak = float(schedule(399)) / 6.99e-4
    assert peak == pytest.approx(np.sqrt(10 * 6), rel=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_both_learning_rates_of_a_weighted_transformer_are_reported(trained, dtype):
    results = trained(dtype).first
    # d^-0.5 t w^-1.5 with d = 8, t = 1, and warm-ups of 2 steps and of 1 step.
    assert results["learning_rate"] == pytest.approx(8**-0.5 * 2**-1.5)
    assert results["branch_learning_rate"] == pytest.approx(8**-0.5)


@pytest.mark.parametrize("step", [1, 100, 4_000, 4_001, 300_000])
@pytest.mark.parametrize(
    ("name", "hidden_size"), [("transformer_base", 512), ("transformer_big", 1024)]
)
def test_the_papers_sets_follow_equation_3(name, hidden_size, step):
    expected = hidden_size**-0.5 * min(step**-0.5, step * 4_000**-1.5)
    assert rate(schedule_of(catalogue.hparams(name)), step) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ("constant", 3.0),
        ("linear_warmup", 0.25),
        ("rsqrt_decay", 0.05),
        ("rsqrt_hidden_size", 0.125),
        ("constant*linear_warmup", 0.75),
    ],
)
def test_each_factor_does_what_its_name_says(factors, expected):
    schedule = FactorSchedule(factors, constant=3.0, warmup_steps=400, hidden_size=64)
    assert rate(schedule, 100) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 1.0),
        (701, 1.0),
        (702, 0.99),
        (751, 0.5),
        (800, 0.01),
        (801, 0.0),
        (900, 0.0),
    ],
)
def test_the_linear_decay_ends_with_the_training(step, expected):
    schedule = FactorSchedule(
        "linear_decay", 1.0, 10, 8, decay_steps=100, train_steps=800
    )
    assert rate(schedule, step) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ("constant*linear_decay", "linear_decay needs `train_steps`"),
        ("constant*cosine", "cosine"),
    ],
)
def test_factors_that_are_unknown_or_lack_a_value_are_refused(factors, message):
    with pytest.raises(ValueError, match=message):
        FactorSchedule(factors, 1.0, warmup_steps=10, hidden_size=8)


@pytest.mark.parametrize("first_step", [0, 1])
@pytest.mark.parametrize("frozen_after_steps", [0, 70])
def test_a_schedule_comes_back_from_its_configuration(first_step, frozen_after_steps):
    schedule = FactorSchedule(
        "constant*linear_warmup*linear_decay",
        2.0,
        warmup_steps=50,
        hidden_size=16,
        decay_steps=30,
        train_steps=80,
        first_step=first_step,
        frozen_after_steps=frozen_after_steps,
    )
    config = keras.saving.serialize_keras_object(schedule)
    copy = keras.saving.deserialize_keras_object(config)
    assert copy.get_config() == schedule.get_config()
    rates = [rate(schedule, step) for step in (1, 69, 70, 71)]
    assert [rate(copy, step) for step in (1, 69, 70, 71)] == rates
    assert (rates[2] > 0.0, rates[3] > 0.0) == (True, not frozen_after_steps)
