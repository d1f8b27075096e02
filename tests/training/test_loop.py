from __future__ import annotations

import contextlib
import io
import math
import re
import time

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.loop import Trainer
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
    losses_of,
    metrics_of,
    saved_steps,
    tiny_settings,
    tiny_trainer,
    train,
    weights_of,
)


def test_dropout_makes_a_difference_to_these_runs(uninterrupted, shards, tmp_path):
    train(tmp_path, shards, train_steps=2, dropout=0.0)
    assert losses_of(tmp_path)[2] != uninterrupted[0][2]


@pytest.mark.parametrize(("every", "steps"), [(3, [3, 6, 7]), (100, [7])])
def test_all_is_written_at_intervals_and_at_the_end(shards, tmp_path, every, steps):
    intervals = {"save_checkpoints_steps": every, "log_step_count_steps": every}
    train(tmp_path, shards, train_steps=7, **intervals)
    assert saved_steps(tmp_path) == list(losses_of(tmp_path)) == steps


@pytest.mark.parametrize(("every", "saved"), [(0, [4, 7, 8]), (5, [4, 5, 8])])
def test_checkpoints_are_written_by_time(shards, tmp_path, monkeypatch, every, saved):
    """A step takes 4 seconds, all after its checkpoint."""
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])

    def wait(step, log):
        seconds[0] += 4.0
        return {}

    options = {"save_checkpoints_steps": every, "save_checkpoints_secs": 10.0}
    options |= {"local_eval_frequency": 1, "evaluators": [wait]}
    train(tmp_path, shards, train_steps=8, **options)
    assert saved_steps(tmp_path) == saved


def test_saving_and_evaluating_are_no_time_of_training(shards, tmp_path, monkeypatch):
    """A step takes a second, a save 10 and an evaluation 100."""
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])

    def wait(duration, result=None):
        seconds[0] += duration
        return result

    trainer = tiny_trainer(
        tmp_path,
        shards,
        log_step_count_steps=2,
        save_checkpoints_steps=2,
        local_eval_frequency=2,
        evaluators=[lambda step, log: wait(100.0, {})],
        train_steps=6,
    )
    step, save = trainer.train_step, trainer.checkpoints.save
    trainer.train_step = lambda batch: wait(1.0, step(batch))
    trainer.checkpoints.save = lambda number: wait(10.0, save(number))
    trainer.train()
    rates = [line["steps_per_second"] for line in metrics_of(tmp_path)]
    assert rates == [pytest.approx(1.0)] * 3


# The weights do not change, so a loss identifies a batch.
FROZEN = {"dropout": 0.0, "learning_rate": 0.0}


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_smoothed_and_a_mean_over_tokens(shards, tmp_path, smoothing):
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


def test_a_run_that_diverged_at_once_says_that_there_is_no_checkpoint(shards, tmp_path):
    message = r"no checkpoint had been saved yet\.\nLower learning_rate_constant"
    with pytest.raises(DivergedError, match=message) as caught:
        train(tmp_path, shards, train_steps=STEPS, learning_rate=1e30)
    assert caught.value.checkpoint is None
    assert saved_steps(tmp_path) == []
    assert None not in losses_of(tmp_path).values()


@pytest.mark.parametrize(("scale", "diverged"), [(2e-4, False), (5e-5, True)])
def test_a_loss_scale_that_fell_far_ends_training(shards, tmp_path, scale, diverged):
    trainer = tiny_trainer(tmp_path, shards, train_steps=4, log_step_count_steps=3)
    step = trainer.train_step
    trainer.train_step = lambda batch: step(batch) | {"loss_scale": scale}
    expected = (
        pytest.raises(DivergedError, match=r"loss scale fell to 5\.0e-05 at step 3")
        if diverged
        else contextlib.nullcontext()
    )
    with expected:
        trainer.train()


def test_a_run_that_diverged_later_names_the_checkpoint_that_is_kept(shards, tmp_path):
    train(tmp_path, shards, train_steps=3)
    with pytest.raises(DivergedError, match="checkpoint of step 3 is kept") as caught:
        train(tmp_path, shards, train_steps=STEPS, learning_rate=1e30)
    assert step_of(caught.value.checkpoint) == 3


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_one_nonfinite_number_is_enough_to_refuse_weights(shards, tmp_path, value):
    trainer = tiny_trainer(tmp_path, shards, train_steps=50)
    trainer._refuse_diverged_weights()
    bias = np.zeros(VOCAB_SIZE, np.float32)
    bias[3] = value
    trainer.model.logits.bias.assign(bias)
    trainer.step = 37
    with pytest.raises(DivergedError, match="logits/bias is not finite at step 37"):
        trainer._refuse_diverged_weights()


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


def test_epochs_are_counted_from_zero(shards, tmp_path):
    train(tmp_path, shards, train_steps=BATCHES_AN_EPOCH + 1)
    epochs = [line["epoch"] for line in metrics_of(tmp_path)]
    assert epochs == [0] * BATCHES_AN_EPOCH + [1]


def test_evaluators_run_at_intervals_and_at_the_end(shards, tmp_path):
    logs = []
    trainer = train(
        tmp_path,
        shards,
        train_steps=5,
        local_eval_frequency=2,
        evaluators=[
            lambda step, log: logs.append(log) or {"a": step, "b": 0},
            lambda step, log: {"b": -step},
        ],
    )
    lines = metrics_of(tmp_path, "eval")
    assert [(line["step"], line["a"], line["b"]) for line in lines] == [
        (2, 2, -2),
        (4, 4, -4),
        (5, 5, -5),
    ]
    assert logs == [trainer.log] * 3
    # Without the metric of the trainer, no model is the best.
    assert not (tmp_path / "best").exists()


@pytest.mark.parametrize(
    ("scores", "best"), [({2: 10.0, 4: 30.0}, 4), ({}, 2)], ids=["highest", "equal"]
)
def test_the_first_of_the_highest_score_is_kept_as_best(shards, tmp_path, scores, best):
    def evaluate(step, log):
        return {"elo": scores.get(step, 20.0), "bleu": step}

    options = {"local_eval_frequency": 2, "evaluators": [evaluate], "metric": "elo"}
    train(tmp_path, shards, train_steps=8, **options)
    assert saved_steps(tmp_path / "best") == [best]


def test_the_guard_has_the_factor_of_the_settings(shards, tmp_path):
    made = tiny_trainer(tmp_path, shards, train_steps=1)
    guarded = {"max_skipped_updates": 13, "spike_factor": 6.5}
    trainer = Trainer(
        tiny_settings(tmp_path, train_steps=1, **guarded),
        made.model,
        made.optimizer,
        made.strategy,
        made.batches.data,
        StepOptions(label_smoothing=0.1),
    )
    assert trainer.recovery.guard.spike_factor == 6.5


def test_a_resumed_run_shows_its_progress_from_its_step(shards, tmp_path, caplog):
    train(tmp_path, shards, train_steps=5)
    caplog.set_level("INFO", "t2t_repro")
    options = {
        "log_step_count_steps": 2,
        "evaluators": [lambda *_: {"elo": 20, "b": 9}],
    }
    train(tmp_path, shards, train_steps=9, **options)
    lines = [line for line in caplog.messages if line.startswith("step")]
    assert [line.split()[1] for line in lines] == ["6/9", "8/9", "9/9", "9/9"]
    numbers = r"loss \d\.\d{3}  nll \d\.\d{3}  lr 1\.00e-03  target tokens/s \d+$"
    assert re.search(numbers, lines[1])
    assert "eval: elo 20  b 9" in lines[-1]


@pytest.mark.parametrize("draws", [True, False])
def test_a_bar_is_drawn_on_a_terminal_if_asked(shards, tmp_path, monkeypatch, draws):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    train(tmp_path, shards, train_steps=1, show_progress=draws)
    assert ("1/1" in terminal.getvalue()) == draws
