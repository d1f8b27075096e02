"""Trains a tiny model on replicas of the CPU; a process of its own for each number.

TensorFlow is divided into logical devices before it starts, so one process cannot try
several numbers. Usage: python -m tests.support.train_on_replicas REPLICAS RESULT SHARD
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.training.setup import (
    make_optimizer,
    make_strategy,
    seed_dropout_per_replica,
)
from t2t_repro.training.step import StepOptions, make_train_step
from tests.support.tiny_model import tiny_transformer

STEPS = 20
MOST_WEIGHTED = 2  # replicas: tracing its step on 4 takes a minute
# Rows of global batches, which every number of replicas divides.
PLAN = BatchPlan((12,), (8,))


def train_both(
    strategy: tf.distribute.Strategy, shards: Shards
) -> dict[str, np.ndarray]:
    """Train the plain and, on up to 2 replicas, the Weighted Transformer."""
    results = train(strategy, shards, "none")
    if strategy.num_replicas_in_sync > MOST_WEIGHTED:
        return results
    weighted = train(strategy, shards, "split")
    return results | {f"weighted/{name}": values for name, values in weighted.items()}


def _optimizer(branched: str) -> keras.optimizers.Optimizer:
    if branched == "none":
        return keras.optimizers.Adam(1e-3, beta_2=0.98, epsilon=1e-9)
    hparams = catalogue.hparams("weighted_transformer_base")
    return make_optimizer(hparams.replace(branch_frozen_after_steps=STEPS // 2))


def train(
    strategy: tf.distribute.Strategy, shards: Shards, branched: str
) -> dict[str, np.ndarray]:
    """Give the metrics of every step, and the weights in the end."""
    with strategy.scope():
        model = tiny_transformer(
            num_encoder_layers=1,
            num_decoder_layers=1,
            branched=branched,
            name="transformer",
        )
        optimizer = _optimizer(branched)
        optimizer.build(model.trainable_variables)
    step = make_train_step(
        model, optimizer, strategy, StepOptions(0.1, clip_grad_norm=1.0)
    )
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


def dropout_masks(strategy: tf.distribute.Strategy) -> np.ndarray:
    """Give what dropout leaves of ones on each replica, `[replicas, 2, 64]`."""
    with strategy.scope():
        model = tiny_transformer(residual_dropout=0.5)
    seed_dropout_per_replica(model, strategy)

    def drop_twice() -> tf.Tensor:
        masks = [model.source_dropout(tf.ones([64]), training=True) for _ in range(2)]
        return tf.stack(masks)

    masks = tf.function(lambda: strategy.run(drop_twice))()
    return np.array(strategy.experimental_local_results(masks))


def main(replicas: int, result: str, shards: Shards) -> None:
    strategy = make_strategy(replicas)
    np.savez(result, **train_both(strategy, shards), masks=dropout_masks(strategy))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Shards(tuple(sys.argv[3:])))
