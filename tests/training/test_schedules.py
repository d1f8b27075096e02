from __future__ import annotations

import keras
import pytest

from t2t_repro import catalogue
from t2t_repro.training.optimizer import FactorSchedule, FrozenSchedule, make_optimizer

ALL_FACTORS = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"


def rate(schedule: FactorSchedule, step: int) -> float:
    """Return the rate of update number `step`, counted from 1 as in the paper."""
    return float(schedule(step - 1))


def schedule_of(name: str) -> FactorSchedule:
    config = make_optimizer(catalogue.hparams(name)).get_config()["learning_rate"]
    return keras.saving.deserialize_keras_object(config)


@pytest.mark.parametrize("step", [1, 2, 100, 3_999, 4_000, 4_001, 100_000, 300_000])
@pytest.mark.parametrize(
    ("name", "hidden_size"), [("transformer_base", 512), ("transformer_big", 1024)]
)
def test_the_papers_sets_follow_equation_3(name, hidden_size, step):
    expected = hidden_size**-0.5 * min(step**-0.5, step * 4_000**-1.5)
    assert rate(schedule_of(name), step) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "peak_step", "peak"),
    [
        ("transformer_base", 4_000, 6.99e-4),
        ("transformer_big", 4_000, 4.94e-4),
        ("transformer_base_v3", 8_000, 9.88e-4),
    ],
)
def test_the_rate_peaks_at_the_end_of_the_warm_up(name, peak_step, peak):
    schedule = schedule_of(name)
    rates = [rate(schedule, peak_step + offset) for offset in (-1, 0, 1)]
    assert rates[1] == pytest.approx(peak, rel=1e-3)
    assert max(rates) == rates[1]


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


def test_the_first_update_is_not_multiplied_by_zero():
    schedule = FactorSchedule(ALL_FACTORS, 1.0, warmup_steps=4_000, hidden_size=512)
    assert rate(schedule, 1) > 0.0


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


def test_the_linear_decay_needs_the_length_of_the_training():
    with pytest.raises(ValueError, match="linear_decay needs `train_steps`"):
        FactorSchedule("constant*linear_decay", 1.0, warmup_steps=10, hidden_size=8)


def test_an_unknown_factor_is_refused():
    with pytest.raises(ValueError, match="cosine"):
        FactorSchedule("constant*cosine", 1.0, warmup_steps=10, hidden_size=8)


def test_the_schedule_comes_back_from_its_configuration():
    schedule = FactorSchedule(
        f"{ALL_FACTORS}*linear_decay", 2.0, 50, 16, decay_steps=30, train_steps=80
    )
    config = keras.saving.serialize_keras_object(schedule)
    copy = keras.saving.deserialize_keras_object(config)
    assert copy.get_config() == schedule.get_config()
    assert rate(copy, 70) == rate(schedule, 70)


@pytest.mark.parametrize("after_steps", [0, 70])
def test_a_frozen_schedule_comes_back_from_its_configuration(after_steps):
    schedule = FrozenSchedule(FactorSchedule("constant", 2.0, 50, 16), after_steps)
    config = keras.saving.serialize_keras_object(schedule)
    copy = keras.saving.deserialize_keras_object(config)
    for step in (68, 69, 70):
        assert rate(copy, step) == rate(schedule, step)
