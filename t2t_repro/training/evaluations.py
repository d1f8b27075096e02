"""Evaluate between updates, keep the best models, and end training without progress."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path

import keras

from t2t_repro.files import atomic_write
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import (
    BEST_MODELS_FOLDER,
    SCORES_FILE,
    all_checkpoints,
    recorded_scores,
    step_of,
)
from t2t_repro.training.checkpoints import (
    model_variables,
    remove_checkpoint,
    remove_partial_checkpoints,
    write_checkpoint,
)
from t2t_repro.training.metrics_file import EVAL_SPLIT
from t2t_repro.training.metrics_log import Evaluator, MetricsLog
from t2t_repro.training.optimizer import averaged_weights
from t2t_repro.training.training_state import TrainingCheckpoints

logger = logging.getLogger(__name__)


class Evaluations:
    """Evaluations of a training run: their schedule and their consequences.

    Args:
        model: The model in training.
        optimizer: Its optimizer, which may have moving averages of the weights.
        checkpoints: The checkpoints of the run, which keep the best model.
        log: Receives a line of metrics per evaluation.
        settings: Settings of the training run.
        metric: Metric of the evaluators; the model with its highest value is kept as
            "best".
        evaluators: Functions whose metrics together are an evaluation.
        best_models: Keeps the models with the highest values of the watched metric;
            None = only the highest one, as "best".
    """

    def __init__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        checkpoints: TrainingCheckpoints,
        log: MetricsLog,
        settings: TrainSettings,
        metric: str,
        evaluators: Sequence[Evaluator] = (),
        best_models: BestModels | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.checkpoints = checkpoints
        self.log = log
        self.settings = settings
        self.metric = metric
        self.evaluators = evaluators
        self.best_models = best_models
        self._best = -math.inf

    def resume(self) -> None:
        """Read the value of the best model so far."""
        self._best = self.checkpoints.best_value(self.metric)

    def is_due(self, step: int) -> bool:
        """Return whether an evaluation is due after a step."""
        return step % self.settings.steps_between_evaluations == 0

    def is_logged(self, step: int) -> bool:
        """Return whether the log has the evaluation of a step."""
        return self.log.has_line(EVAL_SPLIT, step)

    def evaluate(self, step: int) -> dict[str, float]:
        """Evaluate the weights of a step, or their moving averages.

        Returns:
            The metrics of all evaluators, empty if there are none.
        """
        if not self.evaluators:
            return {}
        with averaged_weights(self.model, self.optimizer):
            metrics = self._evaluate_weights(step)
        # Write the line last: a resumed run repeats an evaluation without a line.
        self.log.scalars(EVAL_SPLIT, step, metrics)
        return metrics

    def _evaluate_weights(self, step: int) -> dict[str, float]:
        """Return the metrics of the model's weights, and keep the best ones."""
        metrics: dict[str, float] = {}
        for evaluator in self.evaluators:
            metrics |= evaluator(step, self.log)
        value = metrics.get(self.metric, -math.inf)
        if value == 0 and self._best == -math.inf:
            logger.info(
                "no model is kept as the best one until %s is above 0",
                self.metric,
            )
            return metrics
        if value > self._best:
            self._best = value
            self.checkpoints.save_best(step, self.metric, value)
        if self.best_models and value > -math.inf:
            self.best_models.offer(step, value)
        return metrics

    def should_stop(self, step: int) -> bool:
        """Return whether training should end because no recent value was the highest.

        The log has the values, so a resumed run decides as one that never stopped. If a
        finished run was extended, the evaluation at its former end is ignored, because
        an uninterrupted run would not have made it.
        """
        metric, patience = self.metric, self.settings.early_stopping_patience
        if not patience:
            return False
        logged = self.log.values(EVAL_SPLIT, metric)
        values = {at: value for at, value in logged.items() if self.is_due(at)}
        if not is_exhausted(list(values.values()), patience):
            return False
        best = max(values, key=values.__getitem__)
        logger.info(
            "stopping early at step %d: %d evaluations without a higher %s than "
            "%.4g of step %d",
            step,
            patience,
            metric,
            values[best],
            best,
        )
        return True


def is_exhausted(values: Sequence[float], patience: int) -> bool:
    """Return whether the last evaluations brought no higher value.

    Values that were always 0, such as BLEU of a model that has learned little, say
    nothing about progress.

    Args:
        values: A score of every evaluation so far, where higher is better.
        patience: Number of evaluations in a row that may bring no higher value than
            the highest one before them; 0 = any number.
    """
    if not patience or not any(values):
        return False
    return len(values) - 1 - values.index(max(values)) >= patience


class BestModels:
    """The weights with the highest scores, in the folder `best_models` of a run.

    A file of scores by step is written after the weights and before others are removed,
    so a process that is killed at any moment loses none of them. Offering the model of
    a step again, as a resumed run does, changes nothing.

    Args:
        output_dir: Folder of the run.
        model: The model.
        keep: Number of models to keep, at least 1.
    """

    def __init__(self, output_dir: str | Path, model: keras.Model, keep: int) -> None:
        self.output_dir = Path(output_dir)
        self.folder = self.output_dir / BEST_MODELS_FOLDER
        self._variables = model_variables(model)
        self._keep = keep

    def offer(self, step: int, score: float) -> bool:
        """Keep the model's weights if their score is among the highest.

        Of equal scores, the earlier one wins, as for the model "best". So does a higher
        score of the same step, left by training before it went back to a checkpoint.

        Args:
            step: Number of completed updates.
            score: Score of the weights.

        Returns:
            Whether they are kept.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        before = recorded_scores(self.output_dir)
        if before.get(step, -math.inf) >= score:
            return True
        scores = before | {step: score}
        ranked = sorted(scores, key=lambda other: (-scores[other], other))
        kept = ranked[: self._keep]
        if step in kept:
            write_checkpoint(self._variables, self.folder, step)
        recorded = {str(other): scores[other] for other in sorted(kept)}
        atomic_write(self.folder / SCORES_FILE, json.dumps(recorded, indent=2) + "\n")
        self._remove_others(kept)
        return step in kept

    def _remove_others(self, kept: list[int]) -> None:
        remove_partial_checkpoints(self.folder)
        for path in all_checkpoints(self.folder):
            if step_of(path) not in kept:
                remove_checkpoint(path)
