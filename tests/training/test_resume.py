from __future__ import annotations

import contextlib
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training import signals
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.signals import SignalGuard
from t2t_repro.training.training_state import TrainingCheckpoints
from tests.support.tiny_training import (
    BATCHES_AN_EPOCH,
    STEPS,
    Killed,
    losses_of,
    metrics_of,
    saved_steps,
    train,
    weights_of,
)


# In the middle of the first epoch, at its end, in the middle of a later one.
@pytest.mark.parametrize("stop", [3, BATCHES_AN_EPOCH, BATCHES_AN_EPOCH + 2])
def test_a_resumed_run_equals_one_without_a_stop(uninterrupted, shards, tmp_path, stop):
    train(tmp_path, shards, train_steps=stop)
    trainer = train(tmp_path, shards, train_steps=STEPS)
    losses, weights = uninterrupted
    assert losses_of(tmp_path) == losses
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, weights[path])


def signal_at(step, number=signal.SIGTERM):
    """Return an evaluator that receives a signal at a step."""

    def evaluate(now, log):
        if now == step:
            os.kill(os.getpid(), number)
        return {}

    return evaluate


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_update_that_follows_and_stops(shards, tmp_path, number):
    trainer = train(
        tmp_path,
        shards,
        train_steps=STEPS,
        local_eval_frequency=1,
        evaluators=[signal_at(4, number)],
    )
    assert (trainer.step, trainer.stop_signal) == (5, number)
    assert saved_steps(tmp_path) == [5]


def test_a_signal_during_a_missed_evaluation_leaves_the_training(shards, tmp_path):
    train(tmp_path, shards, train_steps=6)
    options = {"local_eval_frequency": 3, "evaluators": [signal_at(6)]}
    assert train(tmp_path, shards, train_steps=9, **options).step == 6


def scores(step, log):
    return {"bleu": {4: 30.0}.get(step, 20.0 + step / 10)}


def killed_at(step):
    """Return an evaluator that is killed at a step, before it evaluates."""

    def evaluate(now, log):
        if now == step:
            raise Killed
        return scores(now, log)

    return evaluate


def evaluations_of(folder):
    return [(line["step"], line["bleu"]) for line in metrics_of(folder, "eval")]


# 10 steps with an evaluation every 4, and one at the end.
EVALUATIONS = [(4, 30.0), (8, 20.8), (10, 21.0)]


EVALUATING = {"train_steps": 10, "local_eval_frequency": 4}


def interrupt(folder, shards, evaluator, **options):
    """Train until `evaluator` kills or stops the run."""
    with contextlib.suppress(Killed):
        train(folder, shards, evaluators=[evaluator], **EVALUATING | options)


# Saved just before, saved two steps earlier, and at the end.
@pytest.mark.parametrize(("step", "every"), [(4, 1), (8, 3), (10, 1)])
def test_a_run_killed_in_an_evaluation_makes_up_for_it(shards, tmp_path, step, every):
    options = {"save_checkpoints_steps": every}
    interrupt(tmp_path, shards, killed_at(step), **options)
    train(tmp_path, shards, evaluators=[scores], **EVALUATING | options)
    assert evaluations_of(tmp_path) == EVALUATIONS
    assert saved_steps(tmp_path / "best") == [4]


# The update after the signal is saved, and not evaluated.
@pytest.mark.parametrize("stop", [4, 10])
def test_a_run_stopped_at_an_evaluation_makes_up_for_it(shards, tmp_path, stop):
    interrupt(tmp_path, shards, scores, monitors=[signal_at(stop - 1)])
    assert saved_steps(tmp_path)[-1] == stop
    assert stop not in dict(evaluations_of(tmp_path))
    interrupt(tmp_path, shards, scores)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_a_signal_during_a_save_loses_no_evaluation(shards, tmp_path, monkeypatch):
    """The run resumes from the checkpoint of the next step."""
    real_save = TrainingCheckpoints.save

    def save(self, step):
        if step == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return real_save(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingCheckpoints, "save", save)
        interrupt(tmp_path, shards, scores, save_checkpoints_steps=4)
    assert saved_steps(tmp_path) == [4, 5]
    interrupt(tmp_path, shards, scores)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_a_trainer_removes_the_leftovers_of_a_killed_save(shards, tmp_path):
    (tmp_path / "model.ckpt-9_temp").mkdir()
    train(tmp_path, shards, train_steps=1)
    assert not (tmp_path / "model.ckpt-9_temp").exists()


def test_an_evaluation_that_is_in_the_metrics_is_not_made_again(shards, tmp_path):
    for _ in range(2):
        train(tmp_path, shards, evaluators=[scores], **EVALUATING)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_a_longer_run_does_not_evaluate_where_it_was_resumed(shards, tmp_path):
    """Step 3 is the last step of a run that never evaluated."""
    train(tmp_path, shards, train_steps=3)
    train(tmp_path, shards, evaluators=[scores], **EVALUATING)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_a_run_killed_after_saving_the_best_catches_up(shards, tmp_path, monkeypatch):
    def be_killed(self, split, step, values):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(MetricsLog, "scalars", be_killed)
        interrupt(
            tmp_path, shards, scores, log_step_count_steps=100, save_checkpoints_steps=4
        )
    train(tmp_path, shards, evaluators=[scores], **EVALUATING)
    assert evaluations_of(tmp_path) == EVALUATIONS
    assert saved_steps(tmp_path / "best") == [4]


def no_space(*args, **kwargs):
    raise tf.errors.ResourceExhaustedError(
        None, None, "run/model.ckpt-5_temp/part-0; No space left on device"
    )


@pytest.mark.parametrize(
    ("done", "answer"), [(0, "starts again"), (3, r"resumes from step 3")]
)
def test_a_full_disk_says_where_to_resume(shards, tmp_path, monkeypatch, done, answer):
    if done:
        train(tmp_path, shards, train_steps=done)
    monkeypatch.setattr(tf.train.Checkpoint, "write", no_space)
    with pytest.raises(
        UserError,
        match=rf"^cannot write {tmp_path}: No space left on device; free space, then "
        rf"the same command {answer}\.$",
    ):
        train(tmp_path, shards, train_steps=5)


def test_no_memory_is_not_a_full_disk(shards, tmp_path):
    def evaluate(step, log):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    with pytest.raises(tf.errors.ResourceExhaustedError):
        train(tmp_path, shards, train_steps=2, evaluators=[evaluate])


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt, which a shell's background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_later_interrupt_acts_as_usual(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(signals.time, "monotonic", lambda: clock[0])
    received = []
    with SignalGuard(received.append):
        os.kill(os.getpid(), signal.SIGINT)
        clock[0] += 1.9
        os.kill(os.getpid(), signal.SIGINT)  # the same request, delivered twice
        os.kill(os.getpid(), signal.SIGTERM)
        clock[0] += 0.2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert received == [signal.SIGINT]


def test_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with SignalGuard(lambda number: None):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert after == before
