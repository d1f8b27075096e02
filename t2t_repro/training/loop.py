"""The training loop: updates, and everything that happens between them."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence

import keras
import tensorflow as tf

from t2t_repro.data.pipeline import Batch, BatchPlan, Shards, training_epoch
from t2t_repro.errors import UserError
from t2t_repro.training.checkpoints import TrainingCheckpoints, step_of
from t2t_repro.training.metrics_log import MetricsLog, Progress
from t2t_repro.training.setup import seed_dropout_per_replica
from t2t_repro.training.signals import SignalGuard
from t2t_repro.training.step import StepOptions, make_train_step

logger = logging.getLogger(__name__)

# Given the step, returns metrics and writes what else it likes to the log.
Evaluator = Callable[[int, MetricsLog], dict[str, float]]
# Given the step, writes what it watches to the log.
Monitor = Callable[[int, MetricsLog], None]


@dataclasses.dataclass(frozen=True)
class LoopOptions:
    """How long to train, and what to do how often.

    Attributes:
        train_steps: Updates at the end of training, those before a resume included.
        seed: Decides the order of the data.
        log_every_steps: Steps between two lines of training metrics.
        eval_every_steps: Steps between two evaluations.
        save_every_steps: Steps between two checkpoints; 0 = by time alone.
        save_every_seconds: Seconds between two checkpoints; 0 = by steps alone.
        best_metric: The evaluators' metric whose highest value is kept as "best".
    """

    train_steps: int
    seed: int
    log_every_steps: int = 100
    eval_every_steps: int = 1000
    save_every_steps: int = 1000
    save_every_seconds: float = 0.0
    best_metric: str = "bleu"


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """The shards to train on and the shapes of their batches.

    Attributes:
        shards: Files of the training split.
        plan: Shapes of global batches.
    """

    shards: Shards
    plan: BatchPlan


class Trainer:
    """Trains a model on global batches, under any strategy.

    Args:
        model: Made under the strategy's scope.
        optimizer: Built on the model's variables, under the scope.
        strategy: Where the replicas are.
        data: What to train on.
        checkpoints: Where state is saved.
        step_options: See `StepOptions`.
        options: See `LoopOptions`.
        evaluators: Called every `eval_every_steps` and at the end.
        monitors: Called with every line of training metrics.
    """

    def __init__(
        self,
        *,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        strategy: tf.distribute.Strategy,
        data: TrainingData,
        checkpoints: TrainingCheckpoints,
        step_options: StepOptions,
        options: LoopOptions,
        evaluators: Sequence[Evaluator] = (),
        monitors: Sequence[Monitor] = (),
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.strategy = strategy
        self.data = data
        self.checkpoints = checkpoints
        self.options = options
        self.evaluators = evaluators
        self.monitors = monitors
        self.train_step = make_train_step(model, optimizer, strategy, step_options)
        self.log = MetricsLog(checkpoints.output_dir)
        self.step = 0
        self._stop_signal: int | None = None
        self._last_save = time.monotonic()
        self._best = -math.inf

    def train(self) -> int:
        """Train until `train_steps`, from the newest checkpoint on.

        SIGTERM or Ctrl-C saves a checkpoint and stops after the update under way.

        Returns:
            The number of updates done; less than `train_steps` after a signal.

        Raises:
            UserError: If training has diverged, or there is no data.
        """
        self._resume()
        progress = Progress(self.step, self.options.train_steps)
        window = _Window()
        with contextlib.closing(progress), SignalGuard(self._stop_soon):
            for batch in self._batches():
                window.add(self.train_step(batch))
                self.step += 1
                self.checkpoints.batches.assign_add(1)
                progress.advance()
                # A signal that comes later is for the next update, which saves.
                last = self._finished()
                self._between_updates(window, progress, last)
                if last:
                    break
        return self.step

    def _finished(self) -> bool:
        return self.step >= self.options.train_steps or self._stop_signal is not None

    def _resume(self) -> None:
        path = self.checkpoints.restore_latest()
        seed_dropout_per_replica(self.model, self.strategy)
        if path is not None:
            self.step = step_of(path)
            logger.info("going on from step %d (%s)", self.step, path)
        self.log.truncate_after(self.step)
        self._best = self.checkpoints.best_value(self.options.best_metric)

    def _batches(self) -> Iterator[Batch]:
        """Yield distributed batches, epoch after epoch, from where the run stands."""
        if self._finished():
            return
        while True:
            before = self.step
            yield from self._epoch()
            if self.step == before and int(self.checkpoints.batches.numpy()) == 0:
                raise UserError(
                    "no training pair is short enough: received "
                    f"max_length={self.data.plan.boundaries[-1]}."
                )
            self.checkpoints.epoch.assign_add(1)
            self.checkpoints.batches.assign(0)

    def _epoch(self) -> tf.distribute.DistributedDataset:
        replicas = self.strategy.num_replicas_in_sync
        dataset = training_epoch(
            self.data.shards,
            self.data.plan,
            seed=self.options.seed,
            epoch=int(self.checkpoints.epoch.numpy()),
            skip_batches=int(self.checkpoints.batches.numpy()),
            num_replicas=replicas,
        )
        if replicas == 1:
            return dataset
        return self.strategy.distribute_datasets_from_function(lambda _: dataset)

    def _between_updates(self, window: _Window, progress: Progress, last: bool) -> None:
        if last or self.step % self.options.log_every_steps == 0:
            self._write_training_metrics(window, progress)
        evaluates = last or self.step % self.options.eval_every_steps == 0
        saves = last or self._save_is_due()
        if evaluates or saves:
            self._refuse_diverged_weights()
        if saves:
            window.pause(self._save)
        if evaluates and self._stop_signal is None:
            window.pause(lambda: self._evaluate(progress))

    def _write_training_metrics(self, window: _Window, progress: Progress) -> None:
        metrics = window.summarize()
        metrics["epoch"] = int(self.checkpoints.epoch.numpy())
        if not math.isfinite(metrics["loss"]):
            raise self._diverged(f"the loss is {metrics['loss']}")
        self.log.scalars("train", self.step, metrics)
        for monitor in self.monitors:
            monitor(self.step, self.log)
        progress.line(
            self.step,
            f"loss {metrics['loss']:.3f}  nll {metrics['nll']:.3f}  "
            f"lr {metrics['learning_rate']:.2e}  "
            f"target tokens/s {metrics['target_tokens_per_second']:.0f}",
        )

    def _refuse_diverged_weights(self) -> None:
        """Keep a checkpoint of weights that are no numbers from being written."""
        for variable in self.model.trainable_variables:
            if not bool(tf.reduce_all(tf.math.is_finite(variable.value))):
                raise self._diverged(f"{variable.path} is not finite")

    def _diverged(self, symptom: str) -> UserError:
        return UserError(
            f"{symptom} at step {self.step}: training has diverged. The last "
            "checkpoint is kept; lower learning_rate_constant, raise "
            "learning_rate_warmup_steps, or set clip_grad_norm."
        )

    def _evaluate(self, progress: Progress) -> None:
        if not self.evaluators:
            return
        metrics: dict[str, float] = {}
        for evaluator in self.evaluators:
            metrics |= evaluator(self.step, self.log)
        self.log.scalars("eval", self.step, metrics)
        progress.line(
            self.step,
            "eval: " + "  ".join(f"{k} {v:.4g}" for k, v in metrics.items()),
        )
        value = metrics.get(self.options.best_metric, -math.inf)
        if value > self._best:
            self._best = value
            self.checkpoints.save_best(self.step, self.options.best_metric, value)

    def _save_is_due(self) -> bool:
        steps, seconds = self.options.save_every_steps, self.options.save_every_seconds
        by_steps = steps > 0 and self.step % steps == 0
        waited = time.monotonic() - self._last_save
        return by_steps or (seconds > 0 and waited >= seconds)

    def _save(self) -> None:
        self.checkpoints.save(self.step)
        self._last_save = time.monotonic()

    def _stop_soon(self, number: int) -> None:
        self._stop_signal = number
        logger.info("received a signal to stop: saving at the end of this step")


class _Window:
    """Sums the metrics of the steps since the last summary.

    Values stay on the device until they are summed, so that a step need not wait
    for the one before.
    """

    def __init__(self) -> None:
        self._steps: list[dict[str, tf.Tensor]] = []
        self._start = time.monotonic()

    def add(self, results: dict[str, tf.Tensor]) -> None:
        self._steps.append(results)

    def pause(self, action: Callable[[], None]) -> None:
        """Do something else meanwhile, and do not count its time."""
        start = time.monotonic()
        action()
        self._start += time.monotonic() - start

    def summarize(self) -> dict[str, float]:
        """Return means and rates, and begin a new window."""
        steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        seconds = max(time.monotonic() - self._start, 1e-9)
        totals = {k: math.fsum(s[k] for s in steps) for k in steps[0]}
        source, target = totals["source_tokens"], totals["target_tokens"]

        def mean(name: str) -> float:
            """Weigh each step by its target tokens."""
            return math.fsum(s[name] * s["target_tokens"] for s in steps) / target

        self._steps, self._start = [], time.monotonic()
        return {
            "loss": mean("loss"),
            "nll": mean("nll"),
            "gradient_norm": totals["gradient_norm"] / len(steps),
            "learning_rate": steps[-1]["learning_rate"],
            "source_tokens_per_second": source / seconds,
            "target_tokens_per_second": target / seconds,
            "target_tokens_per_step": target / len(steps),
            "padding_share": 1.0 - (source + target) / totals["positions"],
            "steps_per_second": len(steps) / seconds,
        }
