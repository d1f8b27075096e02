from __future__ import annotations

import contextlib
import math
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.errors import UserError
from t2t_repro.training.checkpoints import all_checkpoints, step_of
from t2t_repro.training.divergence import DivergedError
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.step import StepOptions
from tests.support.corpus import random_pairs, write_shards
from tests.support.numpy_transformer import smoothed_cross_entropy
from tests.support.tiny_model import VOCAB_SIZE
from tests.support.tiny_training import (
    BATCHES_AN_EPOCH,
    LONGEST,
    PAIRS,
    losses_of,
    metrics_of,
    tiny_trainer,
    weights_of,
)

STEPS = 2 * BATCHES_AN_EPOCH + 3


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    pairs = random_pairs(PAIRS, LONGEST, VOCAB_SIZE)
    return write_shards(tmp_path_factory.mktemp("shards"), pairs)


def train(folder, shards, **options):
    """Train with dropout on, and give the trainer."""
    trainer = tiny_trainer(folder, shards, **({"dropout": 0.2} | options))
    trainer.train()
    return trainer


@pytest.fixture(scope="module")
def uninterrupted(shards, tmp_path_factory):
    """A run of `STEPS` without a stop: its losses and last weights."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    trainer = train(folder, shards, train_steps=STEPS)
    return losses_of(folder), weights_of(trainer.model)


def saved_steps(folder):
    return [step_of(path) for path in all_checkpoints(folder)]


def test_the_same_seed_gives_the_same_run(uninterrupted, shards, tmp_path):
    trainer = train(tmp_path, shards, train_steps=STEPS)
    losses, weights = uninterrupted
    assert losses_of(tmp_path) == losses
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, weights[path])


# In the middle of the first epoch, at its end, in the middle of a later one.
@pytest.mark.parametrize("stop", [3, BATCHES_AN_EPOCH, BATCHES_AN_EPOCH + 2])
def test_a_resumed_run_equals_an_uninterrupted_one(
    uninterrupted, shards, tmp_path, stop
):
    train(tmp_path, shards, train_steps=stop)
    trainer = train(tmp_path, shards, train_steps=STEPS)
    losses, weights = uninterrupted
    assert losses_of(tmp_path) == losses
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, weights[path])


def test_dropout_makes_a_difference_to_these_runs(uninterrupted, shards, tmp_path):
    train(tmp_path, shards, train_steps=2, dropout=0.0)
    assert losses_of(tmp_path)[2] != uninterrupted[0][2]


def test_a_finished_run_does_nothing_more(shards, tmp_path):
    train(tmp_path, shards, train_steps=2)
    assert train(tmp_path, shards, train_steps=2).step == 2
    assert list(losses_of(tmp_path)) == [1, 2]


def test_checkpoints_are_written_every_so_many_steps_and_at_the_end(shards, tmp_path):
    train(tmp_path, shards, train_steps=8, save_every_steps=3)
    assert saved_steps(tmp_path) == [3, 6, 8]


def test_checkpoints_are_written_by_time(shards, tmp_path, monkeypatch):
    """A step takes 4 seconds, all of them after its checkpoint."""
    seconds = [0.0]
    monkeypatch.setattr("t2t_repro.training.loop.time.monotonic", lambda: seconds[0])

    def wait(step, log):
        seconds[0] += 4.0
        return {}

    options = {"save_every_steps": 0, "save_every_seconds": 10.0}
    options |= {"eval_every_steps": 1, "evaluators": [wait]}
    train(tmp_path, shards, train_steps=8, **options)
    assert saved_steps(tmp_path) == [4, 7, 8]


@pytest.mark.parametrize(("every", "logged"), [(3, [3, 6, 7]), (4, [4, 7]), (100, [7])])
def test_metrics_are_written_every_so_many_steps_and_at_the_end(
    shards, tmp_path, every, logged
):
    train(tmp_path, shards, train_steps=7, log_every_steps=every)
    assert list(losses_of(tmp_path)) == logged


# The weights stay as they are, so a loss shows what is in a batch.
FROZEN = {"dropout": 0.0, "learning_rate": 0.0}


def test_the_seed_decides_the_order_of_the_data(shards, tmp_path):
    losses = []
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        train(tmp_path / name, shards, train_steps=2, seed=seed, **FROZEN)
        losses.append(losses_of(tmp_path / name))
    assert losses[0] == losses[2]
    assert losses[0] != losses[1]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_of_an_epoch_is_smoothed_and_a_mean_over_its_tokens(
    shards, tmp_path, smoothing
):
    trainer = train(
        tmp_path,
        shards,
        train_steps=BATCHES_AN_EPOCH,
        log_every_steps=BATCHES_AN_EPOCH,
        step_options=StepOptions(label_smoothing=smoothing),
        **FROZEN,
    )
    expected = []
    for source, target in random_pairs(PAIRS, LONGEST, VOCAB_SIZE):
        batch = {"inputs": np.array([source]), "targets": np.array([target])}
        (logits,) = trainer.model(batch, training=False).numpy()
        expected.append(smoothed_cross_entropy(logits, np.array(target), smoothing))
    (line,) = metrics_of(tmp_path)
    assert line["loss"] == pytest.approx(np.concatenate(expected).mean(), rel=1e-6)


@pytest.mark.parametrize(("norm", "moves"), [(1e-12, False), (1.0, True)])
def test_the_gradient_is_clipped_as_asked(shards, tmp_path, norm, moves):
    """Adam divides by the gradient's size, unless that is far below its epsilon."""
    before = weights_of(tiny_trainer(tmp_path, shards, train_steps=1).model)
    options = StepOptions(label_smoothing=0.1, clip_grad_norm=norm)
    trainer = train(tmp_path, shards, train_steps=1, dropout=0.0, step_options=options)
    after = weights_of(trainer.model)
    moved = max(np.abs(after[path] - before[path]).max() for path in before)
    assert (moved > 1e-4) == moves


def test_without_an_interval_only_the_end_is_saved(shards, tmp_path):
    train(tmp_path, shards, train_steps=3, save_every_steps=0)
    assert saved_steps(tmp_path) == [3]


def signal_at(step, number=signal.SIGTERM):
    """An evaluator that is hit by a signal."""

    def evaluate(now, log):
        if now == step:
            os.kill(os.getpid(), number)
        return {}

    return evaluate


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_update_that_follows_and_stops(shards, tmp_path, number):
    trainer = tiny_trainer(
        tmp_path,
        shards,
        train_steps=STEPS,
        eval_every_steps=1,
        evaluators=[signal_at(4, number)],
    )
    assert trainer.train() == 5
    assert saved_steps(tmp_path) == [5]


def test_a_run_stopped_by_a_signal_goes_on_as_if_it_had_not_been(
    uninterrupted, shards, tmp_path
):
    train(
        tmp_path,
        shards,
        train_steps=STEPS,
        eval_every_steps=1,
        evaluators=[signal_at(6)],
    )
    train(tmp_path, shards, train_steps=STEPS)
    assert losses_of(tmp_path) == uninterrupted[0]


def test_signals_act_as_before_once_training_is_over(shards, tmp_path):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    train(tmp_path, shards, train_steps=1)
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert after == before


def test_a_diverged_run_is_a_users_error(shards, tmp_path):
    with pytest.raises(UserError, match=r"diverged(.|\n)*Lower learning_rate_constant"):
        train(tmp_path, shards, train_steps=STEPS, learning_rate=1e30)


def test_a_run_that_diverged_at_once_says_that_there_is_no_checkpoint(shards, tmp_path):
    with pytest.raises(DivergedError, match="no checkpoint had been saved") as caught:
        train(tmp_path, shards, train_steps=STEPS, learning_rate=1e30)
    assert caught.value.checkpoint is None
    assert saved_steps(tmp_path) == []


def test_a_run_that_diverged_later_names_the_checkpoint_that_is_kept(shards, tmp_path):
    train(tmp_path, shards, train_steps=3)
    with pytest.raises(DivergedError, match="checkpoint of step 3 is kept") as caught:
        train(tmp_path, shards, train_steps=STEPS, learning_rate=1e30)
    assert step_of(caught.value.checkpoint) == 3


def test_a_diverged_run_keeps_the_last_good_checkpoint(shards, tmp_path):
    train(tmp_path, shards, train_steps=3)
    with pytest.raises(UserError):
        # Saved more often than the loss is looked at.
        train(
            tmp_path,
            shards,
            train_steps=STEPS,
            learning_rate=math.inf,
            save_every_steps=1,
            log_every_steps=100,
            keep=1,
        )
    trainer = tiny_trainer(tmp_path, shards, train_steps=5)
    trainer.train()
    assert all(np.isfinite(w).all() for w in weights_of(trainer.model).values())


def test_data_without_a_short_pair_is_a_users_error(shards, tmp_path):
    with pytest.raises(UserError, match="no training pair is short enough"):
        train(tmp_path, shards, train_steps=1, plan=BatchPlan((1,), (4,)))


def test_metrics_hold_what_is_asked_of_them(shards, tmp_path):
    train(tmp_path, shards, train_steps=2)
    assert set(metrics_of(tmp_path)[-1]) == {
        "split",
        "step",
        "time",
        "loss",
        "nll",
        "gradient_norm",
        "learning_rate",
        "epoch",
        "source_tokens_per_second",
        "target_tokens_per_second",
        "target_tokens_per_step",
        "padding_share",
        "steps_per_second",
    }


def test_the_padding_share_is_that_of_both_sides(shards, tmp_path):
    train(tmp_path, shards, train_steps=BATCHES_AN_EPOCH, log_every_steps=100)
    pairs = random_pairs(PAIRS, LONGEST, VOCAB_SIZE)
    real = sum(len(side) for pair in pairs for side in pair)
    (line,) = metrics_of(tmp_path)
    assert line["padding_share"] == pytest.approx(1 - real / (2 * LONGEST * PAIRS))


def test_the_rows_of_an_epoch_are_counted_from_zero(shards, tmp_path):
    train(tmp_path, shards, train_steps=BATCHES_AN_EPOCH + 1)
    epochs = [line["epoch"] for line in metrics_of(tmp_path)]
    assert epochs == [0] * BATCHES_AN_EPOCH + [1]


def test_every_epoch_has_an_order_of_its_own(shards, tmp_path):
    train(tmp_path, shards, train_steps=2 * BATCHES_AN_EPOCH, **FROZEN)
    losses = list(losses_of(tmp_path).values())
    assert losses[:BATCHES_AN_EPOCH] != losses[BATCHES_AN_EPOCH:]


def test_evaluators_run_every_so_many_steps_and_at_the_end(shards, tmp_path):
    train(
        tmp_path,
        shards,
        train_steps=5,
        eval_every_steps=2,
        evaluators=[lambda step, log: {"a": step}, lambda step, log: {"b": -step}],
    )
    lines = metrics_of(tmp_path, "eval")
    assert [(line["step"], line["a"], line["b"]) for line in lines] == [
        (2, 2, -2),
        (4, 4, -4),
        (5, 5, -5),
    ]


class Killed(BaseException):
    """Stands for `kill -9`: nothing of the trainer runs after it."""


def scores(step, log):
    return {"bleu": {4: 30.0}.get(step, 20.0 + step / 10)}


def killed_at(step):
    """An evaluator of a process that is killed before it has evaluated."""

    def evaluate(now, log):
        if now == step:
            raise Killed
        return scores(now, log)

    return evaluate


def evaluations_of(folder):
    return [(line["step"], line["bleu"]) for line in metrics_of(folder, "eval")]


# 10 steps with an evaluation every 4, and one at the end.
EVALUATIONS = [(4, 30.0), (8, 20.8), (10, 21.0)]
EVALUATING = {"train_steps": 10, "eval_every_steps": 4}


def interrupt(folder, shards, evaluator, **options):
    """Train until `evaluator` kills or stops the run."""
    with contextlib.suppress(Killed):
        train(folder, shards, evaluators=[evaluator], **EVALUATING | options)


@pytest.mark.parametrize("save_every_steps", [1, 3])
@pytest.mark.parametrize("step", [4, 8, 10])
def test_a_run_killed_in_an_evaluation_makes_up_for_it(
    shards, tmp_path, step, save_every_steps
):
    options = {"save_every_steps": save_every_steps}
    interrupt(tmp_path, shards, killed_at(step), **options)
    train(tmp_path, shards, evaluators=[scores], **EVALUATING | options)
    assert evaluations_of(tmp_path) == EVALUATIONS
    assert best_of(tmp_path) == [4]


# The update after the signal is saved, and not evaluated.
@pytest.mark.parametrize("stop", [4, 8, 10])
def test_a_run_stopped_at_an_evaluation_makes_up_for_it(shards, tmp_path, stop):
    interrupt(tmp_path, shards, scores, monitors=[signal_at(stop - 1)])
    assert saved_steps(tmp_path)[-1] == stop
    assert stop not in dict(evaluations_of(tmp_path))
    interrupt(tmp_path, shards, scores)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_an_evaluation_that_is_in_the_metrics_is_not_made_again(shards, tmp_path):
    for _ in range(2):
        train(tmp_path, shards, evaluators=[scores], **EVALUATING)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_a_longer_run_does_not_evaluate_where_it_was_resumed(shards, tmp_path):
    """Step 3 was the last one of a run that never evaluated."""
    train(tmp_path, shards, train_steps=3)
    train(tmp_path, shards, evaluators=[scores], **EVALUATING)
    assert evaluations_of(tmp_path) == EVALUATIONS


def test_a_run_killed_after_saving_the_best_makes_up_for_the_metrics(
    shards, tmp_path, monkeypatch
):
    def be_killed(self, split, step, values):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(MetricsLog, "scalars", be_killed)
        interrupt(tmp_path, shards, scores, log_every_steps=100, save_every_steps=4)
    train(tmp_path, shards, evaluators=[scores], **EVALUATING)
    assert evaluations_of(tmp_path) == EVALUATIONS
    assert best_of(tmp_path) == [4]


def test_the_signal_that_stopped_a_run_is_known(shards, tmp_path):
    trainer = train(tmp_path, shards, train_steps=2)
    assert trainer.stop_signal is None
    options = {"eval_every_steps": 1, "evaluators": [signal_at(3)]}
    trainer = train(tmp_path, shards, train_steps=9, **options)
    assert trainer.stop_signal == signal.SIGTERM


def damage(folder, step):
    (folder / f"model.ckpt-{step}.data-00000-of-00001").write_bytes(b"")


def test_a_run_resumes_from_the_checkpoint_before_a_damaged_one(
    uninterrupted, shards, tmp_path
):
    train(tmp_path, shards, train_steps=7, save_every_steps=3)
    damage(tmp_path, 7)
    trainer = train(tmp_path, shards, train_steps=STEPS)
    losses, weights = uninterrupted
    # The lines of step 7 would be there twice.
    assert [line["step"] for line in metrics_of(tmp_path)] == list(losses)
    assert losses_of(tmp_path) == losses
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, weights[path])


def no_space(*args, **kwargs):
    raise tf.errors.ResourceExhaustedError(
        None, None, "run/model.ckpt-5_temp/part-0; No space left on device"
    )


def test_a_full_disk_says_where_the_run_resumes(shards, tmp_path, monkeypatch):
    train(tmp_path, shards, train_steps=3)
    monkeypatch.setattr(tf.train.Checkpoint, "write", no_space)
    with pytest.raises(
        UserError,
        match=r"^cannot write .*: No space left on device; free space, then the same "
        r"command resumes from step 3\.$",
    ):
        train(tmp_path, shards, train_steps=5)


def test_a_disk_that_is_full_from_the_start_says_so(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(tf.train.Checkpoint, "write", no_space)
    with pytest.raises(UserError, match="then the same command starts again"):
        train(tmp_path, shards, train_steps=2)


def test_no_memory_is_not_a_full_disk(shards, tmp_path):
    def evaluate(step, log):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    with pytest.raises(tf.errors.ResourceExhaustedError):
        train(tmp_path, shards, train_steps=2, evaluators=[evaluate])


def rising_and_falling(step, log):
    return {"bleu": {2: 10.0, 4: 30.0}.get(step, 20.0)}


def best_of(folder):
    return [step_of(path) for path in all_checkpoints(folder / "best")]


def test_the_checkpoint_of_the_highest_bleu_is_kept_as_best(shards, tmp_path):
    options = {"eval_every_steps": 2, "evaluators": [rising_and_falling]}
    train(tmp_path, shards, train_steps=8, **options)
    assert best_of(tmp_path) == [4]


def test_a_resumed_run_knows_how_good_the_best_was(shards, tmp_path):
    options = {"eval_every_steps": 2, "evaluators": [rising_and_falling]}
    train(tmp_path, shards, train_steps=4, **options)
    train(tmp_path, shards, train_steps=8, **options)
    assert best_of(tmp_path) == [4]


def test_the_loss_falls(shards, tmp_path):
    train(tmp_path, shards, train_steps=40, dropout=0.0, learning_rate=1e-2)
    losses = losses_of(tmp_path)
    assert losses[40] < losses[1] - 0.1
