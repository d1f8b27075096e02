"""Train a tiny model on several replicas of the CPU, in its own process.

TensorFlow is divided into logical devices before it starts, so one process can try
only one number of replicas.
Usage: python -m tests.support.train_on_replicas REPLICAS MICRO_STEPS RESULT SHARD
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.training.checkpoint_paths import all_checkpoints
from t2t_repro.training.loop import LoopOptions, Trainer, TrainingData
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.setup import make_strategy
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.training.training_checkpoints import TrainingCheckpoints
from tests.support.tiny_model import tiny_transformer

STEPS = 20
MOST_WEIGHTED = 2  # replicas; tracing its step on 4 takes a minute
# Rows of global batches, which every number of replicas divides.
PLAN = BatchPlan((12,), (8,))


def train_both(
    strategy: tf.distribute.Strategy, shards: Shards, micro_steps: int = 1
) -> dict[str, np.ndarray]:
    """Train the plain and, on up to 2 replicas, the Weighted Transformer."""
    results = train(strategy, shards, "none", micro_steps)
    if strategy.num_replicas_in_sync > MOST_WEIGHTED or micro_steps > 1:
        return results
    weighted = train(strategy, shards, "split")
    return results | {f"weighted/{name}": values for name, values in weighted.items()}


def _optimizer(branched: str) -> keras.optimizers.Optimizer:
    if branched == "none":
        return keras.optimizers.Adam(1e-3, beta_2=0.98, epsilon=1e-9)
    hparams = catalogue.hparams("weighted_transformer_base")
    return make_optimizer(hparams.replace(branch_frozen_after_steps=STEPS // 2))


def train(
    strategy: tf.distribute.Strategy,
    shards: Shards,
    branched: str,
    micro_steps: int = 1,
) -> dict[str, np.ndarray]:
    """Return the metrics of every step and the final weights."""
    with strategy.scope():
        model = tiny_transformer(
            num_encoder_layers=1,
            num_decoder_layers=1,
            branched=branched,
            name="transformer",
        )
        optimizer = _optimizer(branched)
        optimizer.build(model.trainable_variables)
    options = StepOptions(0.1, clip_grad_norm=1.0, micro_steps=micro_steps)
    step = make_train_step(model, optimizer, strategy, options)
    metrics: dict[str, list[float]] = {}
    for _, batch in zip(range(STEPS), _batches(strategy, shards), strict=False):
        for name, value in step(batch).items():
            metrics.setdefault(name, []).append(float(value))
    weights = {f"weights/{v.path}": v.numpy() for v in model.trainable_variables}
    return {name: np.array(values) for name, values in metrics.items()} | weights


def _batches(strategy: tf.distribute.Strategy, shards: Shards) -> Iterable:
    replicas = strategy.num_replicas_in_sync
    tf.random.set_seed(1)
    epoch = training_epoch(shards, PLAN, seed=1, epoch=0, num_replicas=replicas)
    if replicas == 1:
        return epoch
    return strategy.distribute_datasets_from_function(lambda _: epoch)


def _trainer(
    strategy: tf.distribute.Strategy, output_dir: Path, shards: list[str], steps: int
) -> Trainer:
    with strategy.scope():
        model = tiny_transformer(residual_dropout=0.5, name="transformer")
        optimizer = keras.optimizers.Adam(1e-3, name="adam")
        optimizer.build(model.trainable_variables)
    return Trainer(
        model=model,
        optimizer=optimizer,
        strategy=strategy,
        data=TrainingData(shards, PLAN),
        checkpoints=TrainingCheckpoints(output_dir, model, optimizer, keep=1),
        step_options=StepOptions(0.1),
        options=LoopOptions(train_steps=steps, seed=1),
    )


def dropout_masks(
    strategy: tf.distribute.Strategy, output_dir: Path, shards: list[str]
) -> np.ndarray:
    """Return the ones after dropout on each replica, `[replicas, 2, 64]`.

    Call it twice with one folder: in a new run, then in the same run resumed. The
    trainer makes no update; it prepares the replicas as it does before the first.
    """
    resumed = bool(all_checkpoints(output_dir))
    trainer = _trainer(strategy, output_dir, shards, steps=int(resumed))
    trainer.train()
    if not resumed:
        trainer.checkpoints.save(1)
    model = trainer.model

    def drop_twice() -> tf.Tensor:
        masks = [model.source_dropout(tf.ones([64]), training=True) for _ in range(2)]
        return tf.stack(masks)

    masks = tf.function(lambda: strategy.run(drop_twice))()
    return np.array(strategy.experimental_local_results(masks))


def main(replicas: int, micro_steps: int, result: str, shards: Shards) -> None:
    strategy = make_strategy(replicas)
    arrays = train_both(strategy, shards, micro_steps)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("masks", "resumed_masks"):
            arrays[name] = dropout_masks(strategy, Path(folder), shards)
    np.savez(result, **arrays)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Shards(tuple(sys.argv[4:])))
