"""The loop hands every option on; steps take no time, and all values differ."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import signal
from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import BatchPlan, Shards
from t2t_repro.errors import UserError
from t2t_repro.training import evaluations, loop, training_batches
from t2t_repro.training.loop import Trainer, TrainingData
from t2t_repro.training.recovery import WARM_UP, DivergedError
from t2t_repro.training.step import StepOptions
from tests.support.recorder import record, spy
from tests.support.tiny_training import tiny_settings

PLAN = BatchPlan((5, 9), (8, 4))
SHARDS = Shards(("a", "b"), swap_sides=True)
STEP_OPTIONS = StepOptions(label_smoothing=0.17, clip_grad_norm=3.5, jit_compile=True)
BATCHES_PER_EPOCH = 4
METRICS = {
    "loss": 3.0,
    "nll": 2.5,
    "gradient_norm": 1.5,
    "learning_rate": 0.5,
    "source_tokens": 7.0,
    "target_tokens": 6.0,
    "positions": 20.0,
}


class Checkpoints:
    """Checkpoints in memory that record what is saved."""

    def __init__(self, folder, step=0, best=-math.inf):
        self.output_dir = folder
        self.epoch = tf.Variable(0, dtype=tf.int64)
        self.batches = tf.Variable(step % BATCHES_PER_EPOCH, dtype=tf.int64)
        self.epoch.assign(step // BATCHES_PER_EPOCH)
        self.window = tf.Variable("")
        self.step, self.best = step, best
        self.events = []
        if step:
            self.write(step)

    def write(self, step):
        (self.output_dir / f"model.ckpt-{step}.index").touch()

    def clean_up(self):
        self.events.append("clean up")

    def restore_latest(self):
        self.events.append("restore")
        return f"{self.output_dir}/model.ckpt-{self.step}" if self.step else None

    def best_value(self, metric):
        self.events.append(("best value", metric))
        return self.best

    def save(self, step):
        self.write(step)
        self.events.append(("save", step))

    def save_best(self, step, metric, value):
        self.events.append(("save best", step, metric, value))

    def named(self, name):
        return [event[1:] for event in self.events if event[0] == name]


class Log:
    """A log in memory, with lines of an earlier process."""

    def __init__(self, lines=()):
        self.lines = [*lines]
        self.dropped_after = None

    def scalars(self, split, step, values):
        self.lines.append((split, step, dict(values)))

    def has_line(self, split, step):
        return any(line[:2] == (split, step) for line in self.lines)

    def truncate_after(self, step):
        self.dropped_after = step

    def steps(self, split):
        return [line[1] for line in self.lines if line[0] == split]


class Stage:
    """Makes trainers whose steps are not computed, and records their calls."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.trained_on, self.losses = folder, [], {}
        self.monkeypatch = monkeypatch
        self.metrics, self.step_options = METRICS, STEP_OPTIONS
        self.steps = record(
            monkeypatch, loop, "make_train_step", lambda *_, **__: self._step
        )
        self.epochs = record(
            monkeypatch,
            training_batches,
            "training_epoch",
            lambda *_, **__: self._epoch(),
        )
        # Batches are numbers here.
        self.first = record(
            monkeypatch,
            loop,
            "FirstUpdates",
            lambda *_, **__: SimpleNamespace(begin=self.begun.get),
        )
        self.begun = {}
        self.dropout = record(monkeypatch, loop, "seed_dropout_per_replica")
        self.weights = record(monkeypatch, loop, "non_finite_weights")
        self.averaged = record(
            monkeypatch,
            evaluations,
            "averaged_weights",
            lambda *_, **__: contextlib.nullcontext(),
        )
        self.signal_at = None

    def _step(self, batch):
        self.trained_on.append(batch)
        if len(self.trained_on) == self.signal_at:
            signal.raise_signal(signal.SIGTERM)
        return self.metrics | {"loss": self.losses.get(len(self.trained_on), 3.0)}

    def _epoch(self):
        call = self.epochs.calls[-1]
        numbers = range(call["skip_batches"], BATCHES_PER_EPOCH)
        return [(call["epoch"], number) for number in numbers]

    def trainer(self, *, step=0, best=-math.inf, lines=(), replicas=1, **options):
        values = {"train_steps": 9, "random_seed": 11, "log_step_count_steps": 100}
        others = {
            name: options.pop(name)
            for name in ("evaluators", "monitors", "metric")
            if name in options
        }
        self.made = record(
            self.monkeypatch,
            loop,
            "TrainingCheckpoints",
            Checkpoints(self.folder, step, best),
        )
        return Trainer(
            settings=tiny_settings(self.folder, **(values | options)),
            model="model",
            optimizer="optimizer",
            strategy=SimpleNamespace(
                num_replicas_in_sync=replicas,
                distribute_datasets_from_function=lambda make: (
                    "distributed",
                    make(None),
                ),
            ),
            data=TrainingData(SHARDS, PLAN),
            step_options=self.step_options,
            log=Log(lines),
            **others,
        )


@pytest.fixture
def stage(tmp_path, monkeypatch):
    return Stage(tmp_path, monkeypatch)


def test_every_setting_reaches_what_reads_it(stage, monkeypatch):
    guards = record(monkeypatch, loop, "UpdateGuard", "guard")
    recoveries = record(monkeypatch, loop, "Recovery", "recovery")
    best = record(monkeypatch, loop, "BestModels", "best models")
    trainer = stage.trainer(
        max_skipped_updates=13, spike_factor=6.5, keep_best=4, max_rollbacks=5
    )
    assert guards.call == {"spike_factor": 6.5, "warm_up": WARM_UP}
    assert stage.steps.call == {
        "model": "model",
        "optimizer": "optimizer",
        "strategy": trainer.strategy,
        "options": STEP_OPTIONS,
        "guard": "guard",
        "packed": False,
    }
    assert stage.first.call == {
        "strategy": trainer.strategy,
        "num_shapes": 2,
        "jit_compile": STEP_OPTIONS.jit_compile,
    }
    assert stage.made.call == {
        "settings": trainer.settings,
        "model": "model",
        "optimizer": "optimizer",
        "guard": "guard",
    }
    assert recoveries.call == {
        "guard": "guard",
        "checkpoints": trainer.checkpoints,
        "settings": trainer.settings,
    }
    assert best.call == {
        "output_dir": str(stage.folder),
        "model": "model",
        "keep": 4,
    }
    assert trainer.recovery == "recovery"
    assert trainer.evaluations.best_models == "best models"


def test_every_update_is_made_and_one_best_model_kept_by_default(stage):
    trainer = stage.trainer()
    assert (trainer.recovery, trainer.evaluations.best_models) == (None, None)


def test_the_step_reads_packed_rows_if_the_plan_packs_them(stage, monkeypatch):
    packed = BatchPlan((9,), (4,), packed_length=12)
    monkeypatch.setattr("tests.training.test_loop_calls.PLAN", packed)
    stage.trainer()
    assert stage.steps.call["packed"]


@pytest.mark.parametrize("shows", [True, False])
def test_first_updates_are_shown_on_request_and_timed(
    stage, monkeypatch, caplog, shows
):
    caplog.set_level(logging.INFO, "t2t_repro")
    stage.begun = {(0, 0): "compiling a", (0, 2): "compiling b"}
    monkeypatch.setattr(
        loop,
        "timed_update",
        lambda step, batch, iterations: (step(batch), iterations + batch[1]),
    )
    trainer = stage.trainer(train_steps=6, log_step_count_steps=1)
    trainer.optimizer = SimpleNamespace(iterations=10.0)
    trainer.show_progress = shows
    trainer.train()
    metrics = [line[2] for line in trainer.log.lines]
    assert [line.get("compile_seconds") for line in metrics] == [
        10.0,
        None,
        12.0,
        None,
        None,
        None,
    ]
    assert ["steps_per_second" in line for line in metrics] == [
        False,
        True,
        False,
        True,
        True,
        True,
    ]
    shown = [line for line in caplog.messages if line.startswith("compiling")]
    assert [line.split(":")[0] for line in shown] == (
        ["compiling a", "compiling b"] if shows else []
    )
    steps = [line for line in caplog.messages if line.startswith("step")]
    assert ["tokens/s" in line for line in steps] == [False, True, False] + [True] * 3


@pytest.mark.parametrize(("scale", "diverged"), [(2e-4, False), (5e-5, True)])
def test_a_loss_scale_that_fell_too_far_ends_the_training(stage, scale, diverged):
    stage.metrics = METRICS | {"loss_scale": scale}
    expected = (
        pytest.raises(DivergedError, match=r"loss scale fell to 5\.0e-05 at step 4")
        if diverged
        else contextlib.nullcontext()
    )
    with expected:
        stage.trainer(log_step_count_steps=4).train()


def test_every_evaluation_uses_the_average_of_the_optimizer(stage):
    evaluators = [lambda step, log: {}]
    stage.trainer(local_eval_frequency=4, evaluators=evaluators).train()
    call = {"model": "model", "optimizer": "optimizer"}
    assert stage.averaged.calls == [call] * 3  # steps 4, 8 and 9


def test_every_epoch_is_read_from_its_own_position(stage):
    trainer = stage.trainer(step=2)
    assert trainer.train() == 9
    same = {"shards": SHARDS, "plan": PLAN, "seed": 11, "num_replicas": 1}
    same |= {"replicas_here": slice(0, 1)}
    assert stage.epochs.calls == [
        same | {"epoch": 0, "skip_batches": 2},
        same | {"epoch": 1, "skip_batches": 0},
        same | {"epoch": 2, "skip_batches": 0},
    ]
    assert stage.trained_on == [(0, 2), (0, 3), *((1, n) for n in range(4)), (2, 0)]
    assert int(trainer.checkpoints.epoch.numpy()) == 2
    assert int(trainer.checkpoints.batches.numpy()) == 1


@pytest.mark.parametrize("replicas", [1, 3])
def test_an_epoch_is_distributed_to_several_replicas(stage, replicas):
    trainer = stage.trainer(replicas=replicas)
    epoch = trainer.batches.epoch()
    assert stage.epochs.call["num_replicas"] == replicas
    assert (epoch[0] == "distributed") == (replicas > 1)
    if replicas > 1:
        assert epoch[1][0] == (0, 0)


@pytest.mark.parametrize("step", [0, 5])
def test_training_starts_from_the_newest_checkpoint(stage, step, caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    trainer = stage.trainer(step=step, metric="elo")
    trainer.train()
    assert trainer.checkpoints.events[:3] == [
        "clean up",
        "restore",
        ("best value", "elo"),
    ]
    strategy = trainer.strategy
    expected = {"model": "model", "strategy": strategy, "first_replica": 0}
    assert stage.dropout.call == expected
    assert trainer.log.dropped_after == step
    assert len(stage.trained_on) == 9 - step
    assert ("resuming from step 5" in caplog.text) == (step == 5)


@pytest.mark.parametrize("step", [9, 12])
def test_a_finished_run_is_not_trained(stage, step):
    assert stage.trainer(step=step).train() == step
    assert stage.trained_on == []
    assert stage.epochs.calls == []


def test_metrics_are_logged_at_their_interval_and_at_the_end(stage):
    watched = []
    trainer = stage.trainer(
        log_step_count_steps=4, monitors=[lambda step, log: watched.append((step, log))]
    )
    trainer.train()
    assert trainer.log.steps("train") == [4, 8, 9]
    assert watched == [(step, trainer.log) for step in (4, 8, 9)]
    *_, metrics = trainer.log.lines[-1]
    # After steps 4 and 8, an epoch is complete, but the next one has not begun.
    assert [line[2]["epoch"] for line in trainer.log.lines] == [0, 1, 2]
    assert metrics["loss"] == 3.0


def test_checkpoints_are_saved_at_their_interval_and_at_the_end(stage):
    trainer = stage.trainer(save_checkpoints_steps=4)
    trainer.train()
    assert trainer.checkpoints.named("save") == [(4,), (8,), (9,)]


def scores(step, log):
    return {"elo": {3: 10.0, 6: 30.0}.get(step, 20.0), "bleu": float(step)}


def test_the_best_model_is_that_of_the_metric_of_the_options(stage):
    trainer = stage.trainer(local_eval_frequency=3, evaluators=[scores], metric="elo")
    trainer.train()
    assert trainer.log.steps("eval") == [3, 6, 9]
    assert trainer.checkpoints.named("save best") == [
        (3, "elo", 10.0),
        (6, "elo", 30.0),
    ]


def test_a_resumed_run_keeps_the_best_of_the_earlier_process(stage):
    trainer = stage.trainer(
        step=5, best=25.0, local_eval_frequency=3, evaluators=[scores], metric="elo"
    )
    trainer.train()
    assert trainer.checkpoints.named("save best") == [(6, "elo", 30.0)]


def test_an_equal_score_does_not_replace_the_best(stage):
    trainer = stage.trainer(
        local_eval_frequency=3, evaluators=[lambda step, log: {"bleu": 10.0}]
    )
    trainer.train()
    assert trainer.checkpoints.named("save best") == [(3, "bleu", 10.0)]


def test_evaluators_get_step_and_log_and_their_metrics_are_joined(stage):
    seen = []
    trainer = stage.trainer(
        local_eval_frequency=5,
        evaluators=[
            lambda step, log: seen.append((step, log)) or {"a": 1.0, "b": 1.0},
            lambda step, log: {"b": 2.0},
        ],
    )
    trainer.train()
    assert seen == [(5, trainer.log), (9, trainer.log)]
    evaluated = [line for line in trainer.log.lines if line[0] == "eval"]
    assert evaluated[0] == ("eval", 5, {"a": 1.0, "b": 2.0})
    # Without the metric of the options, no model is the best.
    assert trainer.checkpoints.named("save best") == []


def test_without_evaluators_nothing_is_evaluated(stage):
    trainer = stage.trainer(local_eval_frequency=2)
    trainer.train()
    assert trainer.log.steps("eval") == []


@pytest.mark.parametrize(
    ("step", "lines", "evaluated"),
    [
        (6, [], [6, 9]),
        (6, [("train", 6, {}), ("eval", 3, {})], [6, 9]),
        (6, [("eval", 6, {})], [9]),
        (5, [], [6, 9]),
        (0, [], [3, 6, 9]),
        (9, [], [9]),
        (9, [("eval", 9, {})], []),
    ],
)
def test_an_evaluation_that_is_due_and_missing_comes_first(
    stage, step, lines, evaluated
):
    steps = []
    trainer = stage.trainer(
        step=step,
        lines=lines,
        local_eval_frequency=3,
        evaluators=[lambda step, log: steps.append(step) or {}],
    )
    trainer.train()
    assert steps == evaluated


@pytest.mark.parametrize("signal_at", [3, 4])
def test_a_signal_saves_and_leaves_the_evaluation_to_the_next_process(
    stage, signal_at, caplog
):
    caplog.set_level(logging.INFO, "t2t_repro")
    stage.signal_at = signal_at
    trainer = stage.trainer(
        local_eval_frequency=3, evaluators=[scores], save_checkpoints_steps=0
    )
    assert trainer.train() == signal_at
    assert trainer.stop_signal == signal.SIGTERM
    assert trainer.checkpoints.named("save") == [(signal_at,)]
    # The process that resumes completes the line of metrics.
    assert trainer.log.steps("train") == []
    assert trainer.log.steps("eval") == ([] if signal_at == 3 else [3])
    assert "received a signal to stop" in caplog.text


def test_weights_are_checked_before_they_are_saved_or_evaluated(stage):
    trainer = stage.trainer(
        save_checkpoints_steps=4,
        local_eval_frequency=3,
        evaluators=[scores],
        train_steps=8,
    )
    trainer.train()
    # At 3, 4, 6 and 8.
    assert stage.weights.calls == [{"model": "model"}] * 4


@pytest.mark.parametrize("earlier", [None, 4])
def test_weights_that_are_not_finite_are_not_saved(stage, monkeypatch, earlier):
    record(monkeypatch, loop, "non_finite_weights", "decoder/kernel")
    trainer = stage.trainer(step=earlier or 0, save_checkpoints_steps=3)
    with pytest.raises(DivergedError, match="decoder/kernel is not finite") as caught:
        trainer.train()
    assert trainer.checkpoints.named("save") == []
    path = None if earlier is None else str(stage.folder / "model.ckpt-4")
    assert caught.value.checkpoint == path
    assert f"at step {6 if earlier else 3}" in str(caught.value)


def test_a_loss_that_is_not_finite_is_not_logged(stage):
    stage.losses = {2: math.nan}
    trainer = stage.trainer(log_step_count_steps=2)
    with pytest.raises(DivergedError, match="the loss is nan at step 2"):
        trainer.train()
    assert trainer.log.lines == []


@pytest.mark.parametrize(
    ("steps", "seconds", "waited", "is_due"),
    [
        (4, 0.0, 1e9, True),
        (3, 0.0, 1e9, False),
        (0, 0.0, 1e9, False),
        (0, 10.0, 10.0, True),
        (0, 10.0, 9.9, False),
        (3, 10.0, 10.0, True),
        (4, 10.0, 0.0, True),
    ],
)
def test_a_save_is_due_by_steps_or_by_time(
    stage, monkeypatch, steps, seconds, waited, is_due
):
    trainer = stage.trainer(save_checkpoints_steps=steps, save_checkpoints_secs=seconds)
    trainer.step = 8
    trainer._last_save = 100.0
    monkeypatch.setattr(loop.time, "monotonic", lambda: 100.0 + waited)
    assert trainer._save_is_due() == is_due


def test_the_time_between_saves_begins_anew_with_each(stage, monkeypatch):
    trainer = stage.trainer()
    monkeypatch.setattr(loop.time, "monotonic", lambda: 123.0)
    trainer._save()
    assert trainer._last_save == 123.0


@pytest.mark.parametrize(
    ("step", "answer"), [(0, "starts again"), (5, "resumes from step 5")]
)
def test_the_advice_after_a_full_disk_is_what_the_same_command_will_do(
    stage, step, answer
):
    trainer = stage.trainer(step=step)
    assert trainer._next_step() == f"then the same command {answer}"


def test_saving_and_evaluating_do_not_count_as_time_of_training(stage, monkeypatch):
    """A step takes a second, a save 10 and an evaluation 100."""
    seconds = [0.0]
    monkeypatch.setattr(loop.time, "monotonic", lambda: seconds[0])

    def wait(duration, result=None):
        seconds[0] += duration
        return result

    trainer = stage.trainer(
        log_step_count_steps=2,
        save_checkpoints_steps=2,
        local_eval_frequency=2,
        evaluators=[lambda step, log: wait(100.0, {})],
        train_steps=4,
    )
    step, save = trainer.train_step, trainer.checkpoints.save
    trainer.train_step = lambda batch: wait(1.0, step(batch))
    trainer.checkpoints.save = lambda number: wait(10.0, save(number))
    trainer.train()
    rates = [line[2]["steps_per_second"] for line in trainer.log.lines[::2]]
    assert rates == [pytest.approx(1.0), pytest.approx(1.0)]


def test_the_progress_of_a_resumed_run_starts_at_its_step(stage, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    shown = spy(monkeypatch, loop, "Progress")
    trainer = stage.trainer(
        step=5, log_step_count_steps=2, local_eval_frequency=9, evaluators=[scores]
    )
    trainer.train()
    expected = {
        "total": 9,
        "unit": "step",
        "done": 5,
        "seconds_between_lines": None,
        "keep_bar": True,
    }
    assert {name: shown.call[name] for name in expected} == expected
    lines = [line for line in caplog.messages if line.startswith("step")]
    assert [line.split()[1] for line in lines] == ["6/9", "8/9", "9/9", "9/9"]
    assert "loss 3.000  nll 2.500  lr 5.00e-01  target tokens/s" in lines[0]
    assert "eval: elo 20  bleu 9" in lines[-1]


def test_a_full_disk_is_answered_with_the_folder_and_the_next_step(stage):
    trainer = stage.trainer(save_checkpoints_steps=4)
    saved = []

    def save(step):
        if saved:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        saved.append(step)
        trainer.checkpoints.write(step)

    trainer.checkpoints.save = save
    with pytest.raises(UserError) as caught:
        trainer.train()
    answer = str(caught.value)
    assert f"cannot write {stage.folder}: No space left on device" in answer
    assert answer.endswith("then the same command resumes from step 4.")


def test_a_signal_during_a_missed_evaluation_leaves_the_training(stage):
    def stop(step, log):
        signal.raise_signal(signal.SIGTERM)
        return {}

    trainer = stage.trainer(step=6, local_eval_frequency=3, evaluators=[stop])
    assert trainer.train() == 6
    assert stage.trained_on == []


def test_an_epoch_without_a_batch_names_the_longest_length(stage, monkeypatch):
    monkeypatch.setattr(training_batches, "training_epoch", lambda *_, **__: [])
    with pytest.raises(UserError, match="short enough: received max_length=9"):
        stage.trainer().train()


def test_an_epoch_that_was_complete_is_followed_by_the_next(stage):
    """The earlier process stopped at the last batch of an epoch."""
    trainer = stage.trainer(step=5)
    trainer.checkpoints.epoch.assign(0)
    trainer.checkpoints.batches.assign(BATCHES_PER_EPOCH)
    assert trainer.train() == 9
    assert stage.trained_on == [(1, number) for number in range(4)]
