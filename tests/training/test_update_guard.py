from __future__ import annotations

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training.recovery import UpdateGuard, is_acceptable
from t2t_repro.training.step import StepOptions, make_train_step
from tests.support import guarded_updates
from tests.support.guarded_updates import NAN, SPIKE, updates


def counted(guard, loss, norm, skipped=0.0):
    results = {"loss": loss, "gradient_norm": norm, "skipped": skipped}
    guard.count({name: tf.constant(value) for name, value in results.items()})


def test_the_means_are_weighted_towards_the_last_updates():
    guard = UpdateGuard()
    for loss, norm in ((4.0, 1.0), (2.0, 7.0)):
        counted(guard, loss, norm)
    weights = np.array([0.99, 1.0]) / 1.99
    np.testing.assert_allclose(
        guard.means(), [weights @ [4.0, 2.0], weights @ [1.0, 7.0]], rtol=1e-5
    )


def test_there_is_no_limit_before_the_means_are_warm():
    guard = UpdateGuard(spike_factor=5.0, warm_up=2)
    counted(guard, 4.0, 1.0)
    assert (guard.limits().numpy() > 1e38).all()
    counted(guard, 4.0, 1.0)
    np.testing.assert_allclose(guard.limits(), [20.0, 5.0], rtol=1e-5)


def test_without_a_factor_any_finite_value_is_accepted():
    guard = UpdateGuard(spike_factor=0.0, warm_up=0)
    counted(guard, 4.0, 1.0)
    assert is_acceptable(guard.limits(), 3e38, 3e38)


def test_skipped_updates_are_counted_and_do_not_enter_the_means():
    guard = UpdateGuard()
    counted(guard, 4.0, 1.0)
    counted(guard, math.nan, math.inf, skipped=1.0)
    counted(guard, 9.0, 9.0, skipped=1.0)
    assert (int(guard.in_row), int(guard.total)) == (2, 2)
    np.testing.assert_allclose(guard.means(), [4.0, 1.0], rtol=1e-5)
    counted(guard, 4.0, 1.0)
    assert (int(guard.in_row), int(guard.total)) == (0, 2)


def test_an_overflow_of_the_loss_scale_neither_ends_a_row_nor_is_part_of_it():
    guard = UpdateGuard()
    found = []
    for loss, norm, skipped in (
        (4.0, math.inf, 0.0),
        (4.0, 1.0, 1.0),
        (4.0, math.inf, 0.0),
        (4.0, math.nan, 0.0),
        (math.nan, math.nan, 1.0),
        (4.0, 1.0, 0.0),
        (4.0, math.inf, 0.0),
    ):
        counted(guard, loss, norm, skipped)
        found.append((int(guard.in_row), int(guard.total)))
    # An infinite norm that the optimizer skips does not enter the means.
    np.testing.assert_allclose(guard.means(), [4.0, 1.0], rtol=1e-5)
    assert found == [(0, 0), (1, 1), (1, 1), (1, 1), (2, 2), (0, 2), (0, 2)]


@pytest.mark.parametrize(
    ("loss", "norm", "scale", "accepted"),
    [
        (10.0, 5.0, None, True),
        (10.1, 5.0, None, False),
        (10.0, 5.1, None, False),
        (math.nan, 5.0, None, False),
        (math.inf, 5.0, None, False),
        (10.0, math.nan, None, False),
        (10.0, math.inf, None, False),
        # Dynamic loss scaling skips these itself, and lowers its scale.
        (10.0, math.nan, 2.0**15, True),
        (10.0, math.inf, 1.1e-4, True),
        # The scale is so low that it cannot be the reason.
        (10.0, math.nan, 0.9e-4, False),
        (10.0, math.inf, 0.9e-4, False),
        (10.0, 5.0, 0.9e-4, True),
        (math.nan, math.nan, 2.0**15, False),
        (10.0, 5.1, 2.0**15, False),
    ],
)
def test_an_update_is_accepted_within_its_limits(loss, norm, scale, accepted):
    values = map(tf.constant, ([10.0, 5.0], loss, norm))
    scale = None if scale is None else tf.constant(scale)
    assert bool(is_acceptable(*values, scale)) == accepted


# tests/training/test_replicas.py has two replicas.
@pytest.fixture(scope="module", params=["graph", "XLA", "loss scale"])
def trained(request):
    """Return the updates of one way to compile the step."""
    return updates(
        tf.distribute.get_strategy(),
        jit_compile=request.param == "XLA",
        scales_loss=request.param == "loss scale",
    )


@pytest.mark.parametrize("fact", ["skipped", "same"])
def test_a_loss_that_is_not_finite_and_a_spike_are_skipped(trained, fact):
    """The update changes neither weights nor optimizer."""
    assert [n for n, each in enumerate(trained) if each[fact]] == [*NAN, *SPIKE]


def test_a_guard_that_skips_nothing_changes_no_update():
    weights = []
    for guard in (None, UpdateGuard(spike_factor=50.0, warm_up=2)):
        keras.utils.set_random_seed(1)
        model, optimizer = guarded_updates.model_and_optimizer()
        step = make_train_step(
            model,
            optimizer,
            tf.distribute.get_strategy(),
            StepOptions(0.1, jit_compile=True),
            guard,
        )
        for number in range(4):
            step(guarded_updates.batch(number))
        weights.append([v.numpy() for v in (*model.weights, *optimizer.variables)])
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
