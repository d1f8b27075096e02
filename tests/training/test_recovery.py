"""Batches of known positions are bad: the loss of the model is not finite on them."""

from __future__ import annotations

import contextlib
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import Shards
from t2t_repro.training import training_batches
from t2t_repro.training.recovery import DivergedError
from tests.support.tiny_training import metrics_of, saved_steps, tiny_trainer

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
    """Return the weights after training on batches of these positions alone."""
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


def test_going_back_is_logged_and_leaves_no_line_or_checkpoint_behind(
    bad, tmp_path, caplog
):
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


class Killed(BaseException):
    """An error that replaces `kill -9`: the trainer cannot catch it."""


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
def test_an_interrupted_run_makes_the_same_decisions(
    bad, went_through, tmp_path, stops, ends
):
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
