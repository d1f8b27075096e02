"""Bad updates are skipped, or training goes back to a checkpoint."""

from __future__ import annotations

import contextlib
import math
import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import Shards
from t2t_repro.training import training_batches
from t2t_repro.training.recovery import DivergedError, UpdateGuard, is_acceptable
from t2t_repro.training.step import StepOptions, make_train_step
from tests.support import guarded_updates
from tests.support.guarded_updates import NAN, SPIKE, updates
from tests.support.tiny_training import Killed, metrics_of, saved_steps, tiny_trainer


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


PER_EPOCH = 5
POISON = 9  # an id whose embedding is huge
LIMITS = {"max_skipped_updates": 2, "max_rollbacks": 2}
SAVING = {"save_checkpoints_steps": 4, "local_eval_frequency": 100}


def batch(position, is_bad):
    ids = np.random.default_rng(position).integers(2, 9, (4, 6), np.int32)
    if is_bad:
        ids[0, 0] = POISON
    return {"inputs": tf.constant(ids), "targets": tf.constant(ids)}


@pytest.fixture
def bad(monkeypatch):
    """Return the positions of bad batches, counted from the first epoch on."""
    positions = set()

    def training_epoch(shards, plan, *, epoch, skip_batches, **others):
        numbers = range(skip_batches, PER_EPOCH)
        return [
            batch(p, p in positions) for p in (epoch * PER_EPOCH + n for n in numbers)
        ]

    monkeypatch.setattr(training_batches, "training_epoch", training_epoch)
    return positions


def make_trainer(folder, train_steps, **options):
    options = LIMITS | SAVING | options
    trainer = tiny_trainer(folder, Shards(()), train_steps=train_steps, **options)
    table = trainer.model.embedding.embeddings.numpy()
    table[POISON] = 1e38
    trainer.model.embedding.embeddings.assign(table)
    return trainer


def weights_after(trainer):
    trainer.train()
    return [v.numpy() for v in trainer.model.weights]


def weights_of_positions(folder, positions):
    trainer = make_trainer(folder, 1, max_skipped_updates=0)
    for position in positions:
        trainer.train_step(batch(position, False))
    return [v.numpy() for v in trainer.model.weights]


def assert_equal(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("positions", "steps", "trained_on"),
    [
        pytest.param({3}, 7, [0, 1, 2, 4, 5, 6], id="a bad batch is left out"),
        # The checkpoint of step 4, before steps 7 and 8 were skipped.
        pytest.param({6, 7}, 10, [0, 1, 2, 3, *range(8, 14)], id="many lead back"),
        pytest.param({6, 7}, 8, [0, 1, 2, 3, *range(8, 12)], id="at the very end"),
        # Step 8 is saved after one skipped update, and step 9 is the second.
        pytest.param({7, 8}, 10, [0, 1, 2, 3, *range(9, 15)], id="saved among them"),
    ],
)
def test_bad_batches_are_left_out_or_lead_back_to_a_checkpoint_and_past_them(
    bad, tmp_path, positions, steps, trained_on
):
    bad |= positions
    weights = weights_after(make_trainer(tmp_path / "run", steps))
    assert_equal(weights, weights_of_positions(tmp_path / "b", trained_on))


def test_every_skipped_update_is_logged_and_counted(bad, tmp_path, caplog):
    bad |= {3, 5}
    with caplog.at_level("INFO", "t2t_repro"):
        make_trainer(tmp_path, 7).train()
    skipped = [r.message for r in caplog.records if "skipped the update" in r.message]
    assert [message.split("  ")[0] for message in skipped] == ["step 4/7", "step 6/7"]
    assert "skipped 2 update(s) since the beginning of the run" in caplog.text
    lines = metrics_of(tmp_path)
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
    for line in lines:
        is_skipped = line["step"] in (4, 6)
        assert line.get("skipped_updates") == (1 if is_skipped else None)
        assert (line["loss"] is None) == is_skipped


def test_going_back_is_logged_and_leaves_no_line_or_checkpoint(bad, tmp_path, caplog):
    bad |= {6, 7}
    make_trainer(tmp_path, 10).train()
    message = "going back to the checkpoint of step 4 (return 1 of at most 2)"
    assert message in caplog.text
    assert [line["step"] for line in metrics_of(tmp_path)] == list(range(1, 11))
    assert saved_steps(tmp_path) == [4, 8, 10]


def test_after_several_returns_training_gives_up(bad, tmp_path):
    bad |= set(range(6, 100))
    with pytest.raises(
        DivergedError,
        match=r"^2 update\(s\) in a row had to be skipped at step 6: training has "
        r"diverged, and going back to a checkpoint 2 time\(s\) did not help; the "
        r"checkpoint of step 4 is kept\.\nLower",
    ):
        make_trainer(tmp_path, 20).train()
    assert saved_steps(tmp_path) == [4]


def test_without_a_checkpoint_training_gives_up_at_once(bad, tmp_path):
    bad |= {0, 1}
    with pytest.raises(DivergedError, match="no checkpoint had been saved yet"):
        make_trainer(tmp_path, 20).train()


def test_a_new_checkpoint_forgives_earlier_returns(bad, tmp_path):
    bad |= {6, 7, 14, 15, 22, 23}
    trainer = make_trainer(tmp_path, 12, max_rollbacks=1)
    assert trainer.train() == 12


def test_saving_among_bad_batches_forgives_no_earlier_return(bad, tmp_path):
    """Step 8 is saved after a skipped update whenever training comes to it."""
    bad |= {7, 8, 12, 13, 17, 18}
    with pytest.raises(DivergedError, match=r"to a checkpoint 2 time\(s\) did not"):
        make_trainer(tmp_path, 20).train()


def test_the_checkpoint_of_a_signal_forgives_no_earlier_return(bad, tmp_path):
    bad |= {6, 7, 10, 11}
    steps = []

    def send(step, log):
        steps.append(step)
        if steps.count(5) == 2:  # the second time, after going back from step 8
            os.kill(os.getpid(), signal.SIGTERM)

    assert make_trainer(tmp_path, 20, max_rollbacks=1, monitors=[send]).train() == 6
    with pytest.raises(DivergedError, match=r"to a checkpoint 1 time\(s\) did not"):
        make_trainer(tmp_path, 20, max_rollbacks=1).train()


@pytest.mark.parametrize(
    ("positions", "stop", "steps", "trained_on"),
    [
        # To that of step 4, as without the signal, before 7 and 8 were skipped.
        ({6, 7}, 6, 10, [0, 1, 2, 3, *range(8, 14)]),
        # There is no other.
        ({2, 3}, 2, 5, [0, 1, 4, 5, 6]),
    ],
)
def test_training_goes_back_past_the_checkpoint_of_a_signal_if_there_is_another(
    bad, tmp_path, positions, stop, steps, trained_on
):
    bad |= positions

    def send(step, log):
        if step == stop - 1:  # training stops after the next update
            os.kill(os.getpid(), signal.SIGTERM)

    assert make_trainer(tmp_path / "run", 10, monitors=[send]).train() == stop
    assert saved_steps(tmp_path / "run")[-1] == stop
    weights = weights_after(make_trainer(tmp_path / "run", steps))
    assert_equal(weights, weights_of_positions(tmp_path / "b", trained_on))


def comparable(folder):
    return [
        {
            k: v
            for k, v in line.items()
            if k != "time" and "_second" not in k and "compile" not in k
        }
        for line in metrics_of(folder)
    ]


BAD = {2, 6, 7, 12, 17, 18, 19, 20}
WITH_DROPOUT = {"dropout": 0.2, "log_step_count_steps": 3}


@pytest.fixture(scope="module")
def results_without_a_stop():
    return []


@pytest.fixture
def went_through(bad, results_without_a_stop, tmp_path_factory):
    """Return weights and metrics of a run without a stop, which is trained once."""
    bad |= BAD
    if not results_without_a_stop:
        folder = tmp_path_factory.mktemp("went_through")
        weights = weights_after(make_trainer(folder, 16, **WITH_DROPOUT))
        results_without_a_stop.append((weights, comparable(folder)))
    return results_without_a_stop[0]


@pytest.mark.parametrize(
    ("ends", "stops"),
    [
        ("killed", (3, 6, 9, 12, 15, 18)),
        # Stops after step 7, between two bad batches.
        ("stopped", (5,)),
        ("stopped", (3, 6, 9, 12, 15, 18)),
    ],
)
def test_an_interrupted_run_decides_the_same(bad, went_through, tmp_path, stops, ends):
    """Each stop is a number of lines of metrics, repeated lines included."""
    expected, metrics = went_through
    for stop in stops:
        count = 0

        def interrupt(step, log, stop=stop):
            nonlocal count
            count += 1
            if count != -(-stop // 3):  # a second signal would end the tests
                return
            if ends == "killed":
                raise Killed
            os.kill(os.getpid(), signal.SIGTERM)

        trainer = make_trainer(tmp_path, 16, **WITH_DROPOUT, monitors=[interrupt])
        with contextlib.suppress(Killed):
            trainer.train()
    weights = weights_after(make_trainer(tmp_path, 16, **WITH_DROPOUT))
    assert_equal(weights, expected)
    assert comparable(tmp_path) == metrics


def test_a_run_without_a_guard_can_be_resumed_with_one(bad, tmp_path):
    make_trainer(tmp_path, 4, max_skipped_updates=0).train()
    bad |= {5}
    assert make_trainer(tmp_path, 7).train() == 7
    assert make_trainer(tmp_path, 8, max_skipped_updates=0).train() == 8
