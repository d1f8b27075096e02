"""What a training loop is given: intervals, data, and what runs between updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import Shards
from t2t_repro.training.metrics_log import MetricsLog

# Takes the step, returns metrics, and may write more to the log.
Evaluator = Callable[[int, MetricsLog], dict[str, float]]
# Takes the step, and writes to the log.
Monitor = Callable[[int, MetricsLog], None]


@dataclasses.dataclass(frozen=True)
class LoopOptions:
    """Length of training, and intervals of logging, evaluation and saving.

    Attributes:
        train_steps: Total number of updates, including those before a resume.
        seed: Seed of the order of the data.
        log_every_steps: Number of steps between two lines of training metrics.
        eval_every_steps: Number of steps between two evaluations.
        save_every_steps: Number of steps between two checkpoints; 0 = by time alone.
        save_every_seconds: Seconds between two checkpoints; 0 = by steps alone.
        best_metric: Metric of the evaluators; the model with its highest value is kept
            as "best".
        patience: Number of evaluations in a row without a higher value after which
            training ends; 0 = never.
    """

    train_steps: int
    seed: int
    log_every_steps: int = 100
    eval_every_steps: int = 1000
    save_every_steps: int = 1000
    save_every_seconds: float = 0.0
    best_metric: str = "bleu"
    patience: int = 0


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """The shards to train on and the shapes of their batches.

    Attributes:
        shards: Files of the training split.
        plan: Shapes of global batches.
    """

    shards: Shards
    plan: BatchPlan
