"""Tiny models to save and restore, and a trainer that is traced quickly."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training import loop
from t2t_repro.training.checkpoint_paths import all_checkpoints, step_of
from t2t_repro.training.loop import Trainer, TrainingData
from t2t_repro.training.optimizer import FactorSchedule
from t2t_repro.training.recovery import UpdateGuard
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.training.training_state import TrainingCheckpoints
from tests.support.tiny_model import VOCAB_SIZE, tiny_arguments

SEED = 1
# 40 pairs of at most 8 tokens make 5 batches of 8 per epoch.
PAIRS, LONGEST = 40, 8
PLAN = BatchPlan((LONGEST,), (8,))
BATCHES_AN_EPOCH = 5
STEPS = 2 * BATCHES_AN_EPOCH + 3


def tiny_model(**options: Any) -> Transformer:
    """Make a model of one layer, with the initial weights of `SEED`."""
    keras.utils.set_random_seed(SEED)
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    return Transformer(**tiny_arguments(**(layers | options)), name="transformer")


class Killed(BaseException):
    """An error that replaces `kill -9`: the trainer cannot catch it."""


class Bigrams(keras.Model):
    """A model that predicts a target from the previous one, with dropout."""

    def __init__(self, dropout: float) -> None:
        super().__init__(name="bigrams")
        self.embedding = keras.layers.Embedding(VOCAB_SIZE, 8, name="embedding")
        self.dropout = keras.layers.Dropout(dropout, name="dropout")
        self.logits = keras.layers.Dense(VOCAB_SIZE, name="logits")
        self.embedding.build((None, None))
        self.logits.build((None, None, 8))
        self.built = True

    def call(self, features, training=None):
        before = keras.ops.pad(features["targets"][:, :-1], [[0, 0], [1, 0]])
        x = self.dropout(self.embedding(before), training=training)
        return self.logits(x)


def tiny_optimizer(model: keras.Model, learning_rate: float = 1e-3) -> keras.Optimizer:
    """Make an optimizer of the model's weights."""
    schedule = FactorSchedule("constant", learning_rate, warmup_steps=1, hidden_size=1)
    optimizer = keras.optimizers.Adam(schedule, name="adam")
    optimizer.build(model.trainable_variables)
    return optimizer


# Tracing a step takes longer than all its updates, so it is traced once per kit.
_traced_step = functools.cache(make_train_step)


class Kit:
    """A model, its optimizer and the guard of its step, with their initial values."""

    def __init__(
        self,
        dropout: float,
        learning_rate: float,
        has_guard: bool,
        make_optimizer: Callable[[keras.Model, float], keras.Optimizer],
    ) -> None:
        self.model = Bigrams(dropout)
        self.optimizer = make_optimizer(self.model, learning_rate)
        self.guard = UpdateGuard() if has_guard else None
        # The variables of a model include the states of dropout.
        self._variables = [*self.model.variables, *self.optimizer.variables]
        if self.guard:
            state = vars(self.guard).values()
            self._variables += [v for v in state if isinstance(v, tf.Variable)]
        self._initial = [variable.numpy() for variable in self._variables]

    def reset(self) -> None:
        """Make all variables as they were after `__init__`."""
        for variable, value in zip(self._variables, self._initial, strict=True):
            variable.assign(value)


_LENDERS: list[Lender] = []


class Lender:
    """Lends objects that are slow to make, each to one user per test."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._here: defaultdict[tuple, list[Any]] = defaultdict(list)
        self._lent: list[tuple[tuple, Any]] = []
        _LENDERS.append(self)

    def lend(self, *arguments: Any) -> Any:
        """Return an object made with these arguments that nobody else has."""
        here = self._here[arguments]
        thing = here.pop() if here else self._make(*arguments)
        self._lent.append((arguments, thing))
        return thing

    def take_back(self) -> None:
        """Let others have what was lent."""
        for arguments, thing in self._lent:
            self._here[arguments].append(thing)
        self._lent.clear()


# A test may replace the optimizer, so the function that makes it is an argument.
_KITS = Lender(Kit)


def _make_epoch(replicas_here: tuple, *arguments: Any) -> tf.data.Dataset:
    names = ("shards", "plan", "seed", "epoch", "skip_batches", "num_replicas")
    given = dict(zip(names, arguments, strict=True))
    return training_epoch(**given, replicas_here=slice(*replicas_here))


_EPOCHS = Lender(_make_epoch)


def lent_epoch(
    shards: Shards,
    plan: BatchPlan,
    *,
    seed: int,
    epoch: int,
    skip_batches: int,
    num_replicas: int,
    replicas_here: slice,
) -> tf.data.Dataset:
    """Return the dataset of `training_epoch`, whose functions may be traced already."""
    here = (replicas_here.start, replicas_here.stop, replicas_here.step)
    return _EPOCHS.lend(here, shards, plan, seed, epoch, skip_batches, num_replicas)


def take_back() -> None:
    """Let later trainers have the objects of all trainers so far, which are done."""
    for lender in _LENDERS:
        lender.take_back()


def tiny_settings(output_dir: Path, **settings: Any) -> TrainSettings:
    """Return settings that log every step, and rarely evaluate or save."""
    given = {
        "random_seed": SEED,
        "log_step_count_steps": 1,
        "local_eval_frequency": 1000,
        "save_checkpoints_steps": 1000,
        "average_last": 0,
    } | settings
    return TrainSettings(
        output_dir=str(output_dir), hparams_set="transformer_tiny", **given
    )


def tiny_trainer(
    output_dir: Path,
    shards: Shards,
    *,
    dropout: float = 0.0,
    learning_rate: float = 1e-3,
    step_options: StepOptions = StepOptions(label_smoothing=0.1),  # noqa: B008
    plan: BatchPlan = PLAN,
    metric: str = "bleu",
    evaluators: Sequence = (),
    monitors: Sequence = (),
    show_progress: bool = False,
    **settings: Any,
) -> Trainer:
    """Make a trainer of `Bigrams` that writes metrics of every step."""
    output_dir.mkdir(exist_ok=True)
    keras.utils.set_random_seed(SEED)
    has_guard = settings.get("max_skipped_updates", 0) > 0
    kit = _KITS.lend(dropout, learning_rate, has_guard, tiny_optimizer)
    kit.reset()
    with (
        mock.patch.object(loop, "make_train_step", _traced_step),
        mock.patch.object(loop, "UpdateGuard", return_value=kit.guard),
    ):
        trainer = Trainer(
            tiny_settings(output_dir, **settings),
            kit.model,
            kit.optimizer,
            tf.distribute.get_strategy(),
            TrainingData(shards, plan),
            step_options,
            metric=metric,
            evaluators=evaluators,
            show_progress=show_progress,
        )
    for monitor in monitors:
        watch_training(trainer, monitor)
    return trainer


def watch_training(trainer: Trainer, function: Callable[[int, Any], object]) -> None:
    """Call a function of the step and the log after every line of training metrics."""
    log = trainer.log
    log.monitors.append(
        lambda split, step, _: function(step, log) if split == "train" else None
    )


def metrics_of(output_dir: Path, split: str = "train") -> list[dict[str, Any]]:
    """Read the lines of `metrics.jsonl`."""
    lines = (output_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [record for record in records if record["split"] == split]


def losses_of(output_dir: Path) -> dict[int, float]:
    """Read the training loss of every step."""
    return {record["step"]: record["loss"] for record in metrics_of(output_dir)}


def weights_of(model: keras.Model) -> dict[str, np.ndarray]:
    """Return the arrays of a model by path."""
    return {v.path: v.numpy() for v in model.trainable_variables}


def train(output_dir: Path, shards: Sequence[str], **options: Any) -> Trainer:
    """Train `Bigrams`, by default with dropout, and return the trainer."""
    trainer = tiny_trainer(output_dir, shards, **({"dropout": 0.2} | options))
    trainer.train()
    return trainer


def saved_steps(output_dir: Path) -> list[int]:
    """Return the steps of the checkpoints in a folder."""
    return [step_of(path) for path in all_checkpoints(output_dir)]


def checkpoints_of(
    model: keras.Model, folder: Path, keep: int = 5, save_every_steps: int = 0
) -> TrainingCheckpoints:
    """Make the checkpoints of a run of this model."""
    settings = tiny_settings(
        folder, keep_checkpoint_max=keep, save_checkpoints_steps=save_every_steps
    )
    return TrainingCheckpoints(settings, model, tiny_optimizer(model))


def fill(model: keras.Model, value: float) -> None:
    """Give all weights one value."""
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, value))


def one_value(model: keras.Model) -> float:
    """Return the value that all weights have."""
    (value,) = {float(x) for w in weights_of(model).values() for x in w.ravel()}
    return value
