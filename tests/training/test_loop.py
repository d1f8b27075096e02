from __future__ import annotations

import io
import math
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.errors import UserError
from t2t_repro.training import training_batches
from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.recovery import DivergedError
from t2t_repro.training.step import StepOptions
from tests.support.corpus import random_pairs
from tests.support.numpy_transformer import smoothed_cross_entropy
from tests.support.tiny_model import VOCAB_SIZE
from tests.support.tiny_training import (
    BATCHES_AN_EPOCH,
    LONGEST,
    PAIRS,
    STEPS,
    fill,
    losses_of,
    metrics_of,
    saved_steps,
    tiny_trainer,
    train,
    weights_of,
)


def rising_and_falling(step, log):
    return {"bleu": {2: 10.0, 4: 30.0}.get(step, 20.0)}


def test_the_same_seed_gives_the_same_run(uninterrupted, shards, tmp_path):
    trainer = train(tmp_path, shards, train_steps=STEPS)
    losses, weights = uninterrupted
    assert losses_of(tmp_path) == losses
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, weights[path])


def test_dropout_makes_a_difference_to_these_runs(uninterrupted, shards, tmp_path):
    train(tmp_path, shards, train_steps=2, dropout=0.0)
    assert losses_of(tmp_path)[2] != uninterrupted[0][2]


@pytest.mark.parametrize(("every", "saved"), [(3, [3, 6, 8]), (5, [5, 8])])
def test_checkpoints_are_written_at_intervals_and_at_the_end(
    shards, tmp_path, every, saved
):
    train(tmp_path, shards, train_steps=8, save_checkpoints_steps=every)
    assert saved_steps(tmp_path) == saved


def test_checkpoints_are_written_by_time(shards, tmp_path, monkeypatch):
    """A step takes 4 seconds, all after its checkpoint."""
    seconds = [0.0]
    monkeypatch.setattr("t2t_repro.training.loop.time.monotonic", lambda: seconds[0])

    def wait(step, log):
        seconds[0] += 4.0
        return {}

    options = {"save_checkpoints_steps": 0, "save_checkpoints_secs": 10.0}
    options |= {"local_eval_frequency": 1, "evaluators": [wait]}
    train(tmp_path, shards, train_steps=8, **options)
    assert saved_steps(tmp_path) == [4, 7, 8]


@pytest.mark.parametrize(("every", "logged"), [(3, [3, 6, 7]), (4, [4, 7]), (100, [7])])
def test_metrics_are_written_at_intervals_and_at_the_end(
    shards, tmp_path, every, logged
):
    train(tmp_path, shards, train_steps=7, log_step_count_steps=every)
    assert list(losses_of(tmp_path)) == logged


# The weights do not change, so a loss identifies a batch.
FROZEN = {"dropout": 0.0, "learning_rate": 0.0}


def test_the_seed_decides_the_order_of_the_data(shards, tmp_path):
    losses = []
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        train(tmp_path / name, shards, train_steps=2, random_seed=seed, **FROZEN)
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
        log_step_count_steps=BATCHES_AN_EPOCH,
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
def test_the_gradient_is_clipped_as_requested(shards, tmp_path, norm, moves):
    """Adam divides by the gradient's size unless it is far below epsilon."""
    before = weights_of(tiny_trainer(tmp_path, shards, train_steps=1).model)
    options = StepOptions(label_smoothing=0.1, clip_grad_norm=norm)
    trainer = train(tmp_path, shards, train_steps=1, dropout=0.0, step_options=options)
    after = weights_of(trainer.model)
    moved = max(np.abs(after[path] - before[path]).max() for path in before)
    assert (moved > 1e-4) == moves


def test_without_an_interval_only_the_end_is_saved(shards, tmp_path):
    train(tmp_path, shards, train_steps=3, save_checkpoints_steps=0)
    assert saved_steps(tmp_path) == [3]


def test_a_diverged_run_is_a_user_error(shards, tmp_path):
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


def test_the_message_of_a_diverged_run_names_the_step(shards, tmp_path):
    trainer = tiny_trainer(tmp_path, shards, train_steps=50)
    trainer.step = 37
    fill(trainer.model, math.nan)
    with pytest.raises(DivergedError, match="is not finite at step 37: training has"):
        trainer._refuse_diverged_weights()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_one_number_that_is_not_finite_is_enough_to_refuse_the_weights(
    shards, tmp_path, value
):
    trainer = tiny_trainer(tmp_path, shards, train_steps=50)
    trainer._refuse_diverged_weights()
    bias = np.zeros(VOCAB_SIZE, np.float32)
    bias[3] = value
    trainer.model.logits.bias.assign(bias)
    with pytest.raises(DivergedError, match="logits/bias is not finite"):
        trainer._refuse_diverged_weights()


def test_an_epoch_is_cut_into_one_part_per_replica(shards, tmp_path, monkeypatch):
    """With the seed of the run, and the position in the epoch."""
    calls = []
    monkeypatch.setattr(
        training_batches, "training_epoch", lambda *_, **given: calls.append(given)
    )
    trainer = tiny_trainer(tmp_path, shards, train_steps=50, random_seed=11)
    trainer.checkpoints.epoch.assign(3)
    trainer.checkpoints.batches.assign(2)
    trainer.batches.strategy = SimpleNamespace(
        num_replicas_in_sync=4,
        distribute_datasets_from_function=lambda make: make(None),
    )
    trainer.batches.workers = SimpleNamespace(first_replica=2, replicas_here=2)
    trainer.batches.epoch()
    expected = {"seed": 11, "epoch": 3, "skip_batches": 2, "num_replicas": 4}
    assert calls == [expected | {"replicas_here": slice(2, 4)}]


def test_a_diverged_run_keeps_the_last_good_checkpoint(shards, tmp_path):
    train(tmp_path, shards, train_steps=3)
    with pytest.raises(UserError):
        # Checkpoints are more frequent than checks of the loss.
        train(
            tmp_path,
            shards,
            train_steps=STEPS,
            learning_rate=math.inf,
            save_checkpoints_steps=1,
            log_step_count_steps=100,
            keep_checkpoint_max=1,
        )
    trainer = tiny_trainer(tmp_path, shards, train_steps=5)
    trainer.train()
    assert all(np.isfinite(w).all() for w in weights_of(trainer.model).values())


def test_data_without_a_short_pair_is_a_user_error(shards, tmp_path):
    with pytest.raises(UserError, match="no training pair is short enough"):
        train(tmp_path, shards, train_steps=1, plan=BatchPlan((1,), (4,)))


def test_a_line_of_metrics_has_these_numbers(shards, tmp_path):
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
    train(tmp_path, shards, train_steps=BATCHES_AN_EPOCH, log_step_count_steps=100)
    pairs = random_pairs(PAIRS, LONGEST, VOCAB_SIZE)
    real = sum(len(side) for pair in pairs for side in pair)
    (line,) = metrics_of(tmp_path)
    assert line["padding_share"] == pytest.approx(1 - real / (2 * LONGEST * PAIRS))


def test_epochs_are_counted_from_zero(shards, tmp_path):
    train(tmp_path, shards, train_steps=BATCHES_AN_EPOCH + 1)
    epochs = [line["epoch"] for line in metrics_of(tmp_path)]
    assert epochs == [0] * BATCHES_AN_EPOCH + [1]


def test_every_epoch_has_another_order(shards, tmp_path):
    train(tmp_path, shards, train_steps=2 * BATCHES_AN_EPOCH, **FROZEN)
    losses = list(losses_of(tmp_path).values())
    assert losses[:BATCHES_AN_EPOCH] != losses[BATCHES_AN_EPOCH:]


def test_evaluators_run_at_intervals_and_at_the_end(shards, tmp_path):
    train(
        tmp_path,
        shards,
        train_steps=5,
        local_eval_frequency=2,
        evaluators=[lambda step, log: {"a": step}, lambda step, log: {"b": -step}],
    )
    lines = metrics_of(tmp_path, "eval")
    assert [(line["step"], line["a"], line["b"]) for line in lines] == [
        (2, 2, -2),
        (4, 4, -4),
        (5, 5, -5),
    ]


def test_the_checkpoint_of_the_highest_bleu_is_kept_as_best(shards, tmp_path):
    options = {"local_eval_frequency": 2, "evaluators": [rising_and_falling]}
    train(tmp_path, shards, train_steps=8, **options)
    assert saved_steps(tmp_path / "best") == [4]


@pytest.mark.parametrize("draws", [True, False])
def test_a_training_draws_a_bar_on_a_terminal_only_if_asked(
    shards, tmp_path, monkeypatch, draws
):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    train(tmp_path, shards, train_steps=1, show_progress=draws)
    assert ("1/1" in terminal.getvalue()) == draws


def test_the_loss_falls(shards, tmp_path):
    train(tmp_path, shards, train_steps=40, dropout=0.0, learning_rate=1e-2)
    losses = losses_of(tmp_path)
    assert losses[40] < losses[1] - 0.1
