"""Train: update the weights, and log, save and evaluate between updates."""

from __future__ import annotations

import contextlib
import logging
import math
import signal
import time
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf

from t2t_repro.data.pipeline import Batch
from t2t_repro.files import full_disk_as_user_error
from t2t_repro.progress import Progress
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import all_checkpoints, step_of
from t2t_repro.training.cluster import Workers
from t2t_repro.training.evaluations import BestModels, Evaluations
from t2t_repro.training.metrics_file import TRAIN_SPLIT
from t2t_repro.training.metrics_log import Evaluator, MetricsLog, MetricsWindow
from t2t_repro.training.optimizer import MIN_LOSS_SCALE
from t2t_repro.training.recovery import (
    DivergedError,
    Recovery,
    UpdateGuard,
    non_finite_weights,
)
from t2t_repro.training.signals import SignalGuard
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.training.training_batches import (
    FirstUpdates,
    TrainingBatches,
    TrainingData,
    timed_update,
)
from t2t_repro.training.training_state import (
    ReadOnlyCheckpoints,
    TrainingCheckpoints,
    seed_dropout_per_replica,
)

logger = logging.getLogger(__name__)


class Trainer:
    """Training loop over global batches, with any strategy.

    Args:
        settings: Settings of the training run.
        model: A model made under the strategy's scope.
        optimizer: Its optimizer, made and built under the scope.
        strategy: The strategy of the replicas.
        data: The training data.
        step_options: See `StepOptions`.
        metric: Metric of the evaluators; the model with its highest value is kept as
            "best".
        evaluators: Functions called at every evaluation and at the end.
        log: Receives the metrics, and tells its monitors; None = a log in the folder
            of the run.
        show_progress: Whether to draw a progress bar if standard error is a terminal,
            with the lines of metrics above it, and to show what is compiled. Without a
            bar, the lines are logged.

    Attributes:
        step: Number of completed updates.
        stopped_early: Whether training ended because the watched metric did not rise.
        stop_signal: Number of the signal that stopped training, or None.
    """

    def __init__(
        self,
        settings: TrainSettings,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        strategy: tf.distribute.Strategy,
        data: TrainingData,
        step_options: StepOptions,
        *,
        metric: str = "bleu",
        evaluators: Sequence[Evaluator] = (),
        log: MetricsLog | None = None,
        show_progress: bool = False,
    ) -> None:
        self.settings = settings
        self.model = model
        self.optimizer = optimizer
        self.strategy = strategy
        self.show_progress = show_progress
        self.workers = Workers(strategy)
        is_chief = self.workers.is_chief
        # Without a guard, every update is made, and training that diverges ends.
        skips = settings.max_skipped_updates > 0
        guard = UpdateGuard(settings.spike_factor) if skips else None
        kind = TrainingCheckpoints if is_chief else ReadOnlyCheckpoints
        self.checkpoints = kind(settings, model, optimizer, guard)
        self.recovery = None
        if guard is not None:
            self.recovery = Recovery(guard, self.checkpoints, settings)
        self.train_step = make_train_step(
            model,
            optimizer,
            strategy,
            step_options,
            guard,
            packed=data.plan.packed_length > 0,
        )
        self.first_updates = FirstUpdates(
            strategy, len(data.plan.shapes), jit_compile=step_options.jit_compile
        )
        self.log = log or MetricsLog(settings.output_dir)
        best_models = None
        if is_chief and settings.keep_best > 1:
            best_models = BestModels(settings.output_dir, model, settings.keep_best)
        self.evaluations = Evaluations(
            model,
            optimizer,
            self.checkpoints,
            self.log,
            settings,
            metric,
            evaluators,
            best_models,
        )
        self.batches = TrainingBatches(
            data, settings.random_seed, strategy, self.workers, self.checkpoints
        )
        self.step = 0
        self.stopped_early = False
        self.stop_signal: int | None = None
        self._window = MetricsWindow()
        self._last_save = time.monotonic()

    def train(self) -> int:
        """Train until `train_steps`, starting from the newest checkpoint.

        SIGTERM or Ctrl-C saves a checkpoint and stops after the current update.
        An evaluation that a killed or stopped process missed comes first, so every run
        has the evaluations of an uninterrupted one. Its lines of metrics are the same,
        too, except for times and rates.

        Returns:
            The number of completed updates; less than `train_steps` after a signal.

        Raises:
            DivergedError: If training has diverged.
            UserError: If there is no data, no checkpoint can be read, or the disk is
                full.
        """
        with full_disk_as_user_error(self.checkpoints.output_dir, self._next_step):
            self._resume()
            with SignalGuard(self._stop_soon):
                self._train_to_end()
        if self.recovery:
            self.recovery.report()
        return self.step

    def _train_to_end(self) -> None:
        """Train, and go on from an earlier checkpoint whenever training diverges."""
        while True:
            try:
                self._train_once()
                return
            except DivergedError as error:
                self._go_back(error)

    def _train_once(self) -> None:
        with Progress(
            self.settings.train_steps,
            "step",
            done=self.step,
            seconds_between_lines=None,
            draw_bar=self.show_progress,
            keep_bar=True,
        ) as progress:
            self._window.pause(lambda: self._make_missed_evaluation(progress))
            self._train_on(self._remaining_batches(), progress)

    def _go_back(self, error: DivergedError) -> None:
        """Return to the last good checkpoint, or raise the error."""
        if self.recovery is None:
            raise error
        with self.workers.chief_first():
            step = self.recovery.go_back(error)
        self._continue_from(step)

    def _train_on(self, batches: Iterator[Batch], progress: Progress) -> None:
        for batch in batches:
            results = self._update(batch, progress)
            self.step += 1
            self.checkpoints.batches.assign_add(1)
            progress.advance()
            if self.recovery:
                self._watch(self.recovery, results, progress)
            # A signal that arrives later stops training after the next update.
            stopping = self._should_stop()
            self._finish_update(progress, stopping)
            if stopping or self._is_complete():
                break

    def _update(self, batch: Batch, progress: Progress) -> dict[str, tf.Tensor]:
        """Make an update, and add its metrics to the window."""
        task = self.first_updates.begin(batch)
        if task is None:
            results, seconds = self.train_step(batch), None
        else:
            shown = self.show_progress
            with progress.task(task) if shown else contextlib.nullcontext():
                results, seconds = timed_update(
                    self.train_step, batch, self.optimizer.iterations
                )
        self._window.add(results, seconds)
        return results

    def _watch(
        self, recovery: Recovery, results: dict[str, tf.Tensor], progress: Progress
    ) -> None:
        """Report a skipped update, and raise an error if there are too many."""
        skipped = recovery.skipped(results)
        if skipped is None:
            return
        progress.message(skipped)
        symptom = recovery.symptom()
        if symptom is not None:
            raise self._diverged_error(symptom)

    def _is_complete(self) -> bool:
        return self.stopped_early or self.step >= self.settings.train_steps

    def _should_stop(self) -> bool:
        """Return whether training stops after this update, on all workers alike."""
        is_last = self.step >= self.settings.train_steps
        stopping = self.workers.agree_to_stop(
            self.step, self.stop_signal is not None, is_last=is_last
        )
        if stopping and self.stop_signal is None:
            self.stop_signal = signal.SIGTERM  # another worker received a signal
        return stopping

    def _resume(self) -> None:
        with self.workers.chief_first():
            self.checkpoints.clean_up()
            path = self.checkpoints.restore_latest()
        if path is not None:
            logger.info("resuming from step %d (%s)", step_of(path), path)
        self._continue_from(0 if path is None else step_of(path))
        self.workers.check_same_step(self.step)
        self.evaluations.resume()

    def _continue_from(self, step: int) -> None:
        """Continue from the restored checkpoint of a step, or from the beginning."""
        self.step = step
        first = self.workers.first_replica
        seed_dropout_per_replica(self.model, self.strategy, first)
        self._window = MetricsWindow(self.checkpoints.window.numpy().decode())
        self.log.truncate_after(step)
        self.stopped_early = self.evaluations.should_stop(step)

    def _next_step(self) -> str:
        """Return how to continue after a full disk."""
        saved = all_checkpoints(self.checkpoints.output_dir)
        step = f"resumes from step {step_of(saved[-1])}" if saved else "starts again"
        return f"then the same command {step}"

    def _evaluation_is_due(self) -> bool:
        return self._is_complete() or self.evaluations.is_due(self.step)

    def _make_missed_evaluation(self, progress: Progress) -> None:
        """Evaluate the restored weights if this was due and is not in the log."""
        due = self.step > 0 and self._evaluation_is_due()
        if due and not self.evaluations.is_logged(self.step):
            self._evaluate(progress)

    def _remaining_batches(self) -> Iterator[Batch]:
        if self._is_complete() or (self.stop_signal and self.workers.count == 1):
            return iter(())
        return self.batches.from_position(lambda: self.step)

    def _finish_update(self, progress: Progress, stopping: bool) -> None:
        complete = self._is_complete()
        # If training stops, the process that resumes it makes the evaluation.
        evaluates = self._evaluation_is_due() and not stopping
        saves = stopping or complete or self._save_is_due()
        if complete or self.step % self.settings.log_step_count_steps == 0:
            self._write_training_metrics(progress)
        if evaluates or saves:
            self._refuse_diverged_weights()
        if saves:
            self._window.pause(self._save)
        if evaluates:
            self._window.pause(lambda: self._evaluate(progress))
        if self.stopped_early and not saves:
            self._save()

    def _write_training_metrics(self, progress: Progress) -> None:
        metrics = self._window.summarize()
        metrics["epoch"] = int(self.checkpoints.epoch.numpy())
        if not math.isfinite(metrics["loss"]) and self.recovery is None:
            raise self._diverged_error(f"the loss is {metrics['loss']}")
        if metrics.get("loss_scale", 1.0) < MIN_LOSS_SCALE and self.recovery is None:
            raise self._diverged_error(
                f"the loss scale fell to {metrics['loss_scale']:.1e}"
            )
        self.log.scalars(TRAIN_SPLIT, self.step, metrics)
        progress.message(
            f"loss {metrics['loss']:.3f}  nll {metrics['nll']:.3f}  "
            f"lr {metrics['learning_rate']:.2e}" + _rate_text(metrics)
        )

    def _refuse_diverged_weights(self) -> None:
        """Raise an error instead of saving weights that are not finite."""
        path = non_finite_weights(self.model)
        if path is not None:
            raise self._diverged_error(f"{path} is not finite")

    def _diverged_error(self, symptom: str) -> DivergedError:
        saved = all_checkpoints(self.checkpoints.output_dir)
        return DivergedError(symptom, self.step, saved[-1] if saved else None)

    def _evaluate(self, progress: Progress) -> None:
        metrics = self.evaluations.evaluate(self.step)
        if metrics:
            progress.message(
                "eval: " + "  ".join(f"{k} {v:.4g}" for k, v in metrics.items())
            )
            self.stopped_early = self.evaluations.should_stop(self.step)

    def _save_is_due(self) -> bool:
        steps = self.settings.steps_between_checkpoints
        seconds = self.settings.save_checkpoints_secs
        by_steps = steps > 0 and self.step % steps == 0
        waited = time.monotonic() - self._last_save
        return by_steps or (seconds > 0 and waited >= seconds)

    def _save(self) -> None:
        if self.recovery:
            self.recovery.before_save(self.step)
        self.checkpoints.window.assign(self._window.state())
        self.checkpoints.save(self.step)
        self._last_save = time.monotonic()

    def _stop_soon(self, number: int) -> None:
        self.stop_signal = number
        when = self.workers.when_stopping
        logger.info("received a signal to stop: saving %s", when)


def _rate_text(metrics: dict[str, float]) -> str:
    """Return the rate of training, or "" if only first updates were made."""
    rate = metrics.get("target_tokens_per_second")
    return "" if rate is None else f"  target tokens/s {rate:.0f}"
