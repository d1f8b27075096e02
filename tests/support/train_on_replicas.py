"""Train tiny models on several replicas of the CPU, in a process of their own.

TensorFlow is divided into logical devices before it starts. Cases with the same number
of replicas can share a process; other strategies would mix up their sums.
Usage: python -m tests.support.train_on_replicas FOLDER SHARD CASE ...
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.data.records import record_writer
from t2t_repro.runs.warm_start import warm_start
from t2t_repro.text import SymbolTokenizer
from t2t_repro.training.checkpoint_paths import all_checkpoints
from t2t_repro.training.checkpoints import model_variables, write_checkpoint
from t2t_repro.training.cluster import make_strategy
from t2t_repro.training.loop import Trainer, TrainingData
from t2t_repro.training.optimizer import (
    averaged_weights,
    make_optimizer,
    moving_averages,
)
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.training.training_batches import try_largest_batch
from tests.support import guarded_updates
from tests.support.tiny_model import VOCAB_SIZE, tiny_transformer
from tests.support.tiny_training import Bigrams, tiny_settings

STEPS = 3
# Rows of global batches, which every number of replicas and steps divides.
PLAN = BatchPlan((12,), (8,))
EMA_DECAY = 0.75
Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Case:
    """A way to divide the same updates.

    R-Drop begins with the second update. Without dropout, it changes none.
    """

    replicas: int
    micro_batches: int = 1
    model: str = "transformer"
    rdrop_weight: float = 0.0

    def alone(self) -> Case:
        """Return the same case on one replica, without micro-batches and R-Drop."""
        return Case(1, 1, self.model)


CASES = {
    "2 weighted": Case(2, model="weighted"),
    "2 x 4": Case(2, 4, "bigrams", rdrop_weight=5.0),
    "4 x 2": Case(4, 2),
    "8": Case(8),
}
FEATURES_WITH = "2 weighted"  # the case whose process also runs `save_features`


def make_model(
    kind: str, dropout: float = 0.0, vocab_size: int = VOCAB_SIZE
) -> keras.Model:
    """Make a model with the same weights every time."""
    keras.utils.set_random_seed(1)
    if kind == "bigrams":
        return Bigrams(dropout)
    return tiny_transformer(
        num_encoder_layers=1,
        num_decoder_layers=1,
        branched_attention="split" if kind == "weighted" else "none",
        layer_prepostprocess_dropout=dropout,
        source_vocab_size=vocab_size,
        target_vocab_size=vocab_size,
        name="transformer",
    )


def _optimizer(kind: str, model: keras.Model) -> keras.optimizers.Optimizer:
    """Make Adam: with moving averages for "bigrams", twice for "weighted"."""
    if kind == "weighted":
        hparams = catalogue.hparams("weighted_transformer_base")
        optimizer = make_optimizer(hparams.replace(branch_frozen_after_steps=STEPS - 1))
    else:
        optimizer = keras.optimizers.Adam(
            1e-3,
            beta_2=0.98,
            epsilon=1e-9,
            use_ema=kind == "bigrams",
            ema_momentum=EMA_DECAY,
            name="adam",
        )
    optimizer.build(model.trainable_variables)
    return optimizer


def train(strategy: tf.distribute.Strategy, shards: Shards, case: Case) -> Arrays:
    """Return the metrics of every step, and the final weights and averages."""
    with strategy.scope():
        model = make_model(case.model)
        optimizer = _optimizer(case.model, model)
    options = StepOptions(
        0.1,
        clip_grad_norm=1.0,
        micro_batches=case.micro_batches,
        rdrop_weight=case.rdrop_weight,
        rdrop_after_steps=1,
    )
    step = make_train_step(model, optimizer, strategy, options)
    metrics: dict[str, list[float]] = {}
    for _, batch in zip(range(STEPS), _batches(strategy, shards), strict=False):
        for name, value in step(batch).items():
            metrics.setdefault(name, []).append(float(value))
    arrays = {name: np.array(values) for name, values in metrics.items()}
    arrays |= {f"weights/{v.path}": v.numpy() for v in model.trainable_variables}
    for weight, average in moving_averages(model, optimizer):
        arrays[f"average/{weight.path}"] = average.numpy()
    return arrays


def _batches(strategy: tf.distribute.Strategy, shards: Shards) -> Iterable:
    replicas = strategy.num_replicas_in_sync
    epoch = training_epoch(shards, PLAN, seed=1, epoch=0, num_replicas=replicas)
    if replicas == 1:
        return epoch
    return strategy.distribute_datasets_from_function(lambda _: epoch)


def _trainer(
    strategy: tf.distribute.Strategy,
    output_dir: Path,
    shards: Shards,
    steps: int,
    dropout: float = 0.5,
) -> Trainer:
    output_dir.mkdir(exist_ok=True)
    with strategy.scope():
        model = make_model("bigrams", dropout)
        optimizer = _optimizer("bigrams", model)
    settings = tiny_settings(
        output_dir,
        train_steps=steps,
        keep_checkpoint_max=1,
        max_skipped_updates=3,
        max_rollbacks=1,
    )
    data = TrainingData(shards, PLAN)
    return Trainer(settings, model, optimizer, strategy, data, StepOptions(0.1))


def copies_of(
    strategy: tf.distribute.Strategy, variables: Iterable[tf.Variable]
) -> list[np.ndarray]:
    """Return the value of every variable on every replica."""
    return [
        np.array([copy.numpy() for copy in strategy.experimental_local_results(v)])
        for v in variables
        if v.dtype != tf.string  # the window of metrics has seconds
    ]


def dropout_masks(
    strategy: tf.distribute.Strategy, output_dir: Path, shards: Shards
) -> np.ndarray:
    """Return the ones after dropout on each replica, `[replicas, 2, 64]`.

    The first call is for a new run, and the second for the same one resumed.
    """
    resumed = bool(all_checkpoints(output_dir))
    trainer = _trainer(strategy, output_dir, shards, steps=1)
    if not resumed:
        # No user can ask for this.
        object.__setattr__(trainer.settings, "train_steps", 0)
    trainer.train()
    if not resumed:
        trainer.checkpoints.save(1)
    model = trainer.model

    def drop_twice() -> tf.Tensor:
        masks = [model.dropout(tf.ones([64]), training=True) for _ in range(2)]
        return tf.stack(masks)

    masks = tf.function(lambda: strategy.run(drop_twice))()
    return np.array(strategy.experimental_local_results(masks))


def largest_batch(
    strategy: tf.distribute.Strategy, folder: Path, shards: Shards
) -> tuple[Arrays, Trainer]:
    """Train with the trial of the largest batch, and without ("plain").

    Returns the values on all replicas before the trial ("0"), after it ("1") and after
    training ("2"), and the trainer without the trial.
    """
    tried, plain = (
        _trainer(strategy, folder / name, shards, STEPS) for name in ("tried", "plain")
    )
    variables = tried.checkpoints.variables
    arrays = numbered("0", copies_of(strategy, variables))
    try_largest_batch(tried.train_step, PLAN, strategy, variables, advice=lambda: "")
    arrays |= numbered("1", copies_of(strategy, variables))
    tried.train()
    plain.train()
    arrays |= numbered("2", copies_of(strategy, variables))
    return arrays | numbered(
        "plain", copies_of(strategy, plain.checkpoints.variables)
    ), plain


def average(trainer: Trainer) -> Arrays:
    """Return the weights on all replicas before, inside and after the average's use."""
    strategy, model = trainer.strategy, trainer.model
    pairs = moving_averages(model, trainer.optimizer)
    weights = [weight.value for weight, _ in pairs]
    values = numbered("average", copies_of(strategy, [mean for _, mean in pairs]))
    values |= numbered("before", copies_of(strategy, weights))
    with averaged_weights(model, trainer.optimizer):
        values |= numbered("inside", copies_of(strategy, weights))
    return values | numbered("after", copies_of(strategy, weights))


def warm_starts(strategy: tf.distribute.Strategy, folder: Path) -> Arrays:
    """Start with weights of another vocabulary, on all replicas and on one."""
    there = make_model("transformer")
    path = write_checkpoint(model_variables(there), folder, 7)
    here, other = SymbolTokenizer(list("xy5z1w")), SymbolTokenizer(list("01234567"))
    values: Arrays = {}
    for name, scope in (("all", strategy), ("one", tf.distribute.get_strategy())):
        with scope.scope():
            model = make_model("transformer", vocab_size=here.vocab_size)
        warm_start(model, path, (here, here), (other, other))
        values |= numbered(name, copies_of(scope, [v.value for v in model.weights]))
    return values


def numbered(name: str, values: Iterable[np.ndarray]) -> Arrays:
    """Name arrays by their numbers."""
    return {f"{name}/{number:02}": value for number, value in enumerate(values)}


def save_features(folder: Path, shards: Shards) -> None:
    """Write the arrays of everything that is not an update, on 2 replicas."""
    strategy = strategy_of(2)
    for name in ("masks", "resumed_masks"):
        masks = dropout_masks(strategy, folder / "masks", shards)
        np.savez(folder / f"{name}.npz", masks=masks)
    arrays, trainer = largest_batch(strategy, folder, shards)
    np.savez(folder / "largest_batch.npz", **arrays)
    np.savez(folder / "average.npz", **average(trainer))
    np.savez(folder / "warm_start.npz", **warm_starts(strategy, folder))
    guarded = guarded_updates.updates(strategy)
    facts = {name: [update[name] for update in guarded] for name in ("skipped", "same")}
    np.savez(folder / "guarded.npz", **facts)


@functools.cache
def strategy_of(replicas: int) -> tf.distribute.Strategy:
    """Return the strategy of some of the CPU's devices.

    Two strategies of the same devices would mix up their sums.
    """
    return tf.distribute.MirroredStrategy([f"CPU:{n}" for n in range(replicas)])


def main(folder: str, shard: str, *names: str) -> None:
    """Train the cases, and write their arrays to FOLDER/CASE.npz."""
    shards = Shards((shard,))
    # The CPU can still be divided into replicas after preparing data.
    with record_writer(Path(folder) / "written_before") as write:
        write(b"record")
    make_strategy(max(CASES[name].replicas for name in names))
    for name in names:
        case = CASES[name]
        arrays = train(strategy_of(case.replicas), shards, case)
        np.savez(Path(folder) / f"{name}.npz", **arrays)
    if FEATURES_WITH in names:
        save_features(Path(folder), shards)


if __name__ == "__main__":
    main(*sys.argv[1:])
