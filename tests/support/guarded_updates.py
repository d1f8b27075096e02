"""Updates of a guarded step on batches of which some are bad."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.training.recovery import UpdateGuard
from t2t_repro.training.step import StepOptions, make_train_step
from tests.support.tiny_training import Bigrams

ROWS, LENGTH, UPDATES = 4, 6, 9
NAN, SPIKE = (4, 5), (7,)  # numbers of the bad updates
_ID_OF_NAN, _ID_OF_SPIKE = 7, 6


def model_and_optimizer(
    scales_loss: bool = False,
) -> tuple[keras.Model, keras.Optimizer]:
    """Make a model to which two ids are poison."""
    model = Bigrams(dropout=0.1)
    table = model.embedding.embeddings.numpy()
    table[_ID_OF_NAN], table[_ID_OF_SPIKE] = np.nan, 1e4
    model.embedding.embeddings.assign(table)
    optimizer = keras.optimizers.Adam(1e-2)
    if scales_loss:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def batch(number: int) -> dict[str, tf.Tensor]:
    """Return a batch, with an id that is poison if its number is that of a bad one."""
    ids = np.random.default_rng(number).integers(2, 6, (ROWS, LENGTH), np.int32)
    if number in NAN:
        ids[0, 1] = _ID_OF_NAN
    if number in SPIKE:
        ids[0, 1] = _ID_OF_SPIKE
    return {"inputs": tf.constant(ids), "targets": tf.constant(ids)}


def updates(
    strategy: tf.distribute.Strategy,
    *,
    jit_compile: bool = False,
    scales_loss: bool = False,
) -> list[dict[str, Any]]:
    """Return of each update whether it was skipped, and whether it changed nothing."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model, optimizer = model_and_optimizer(scales_loss)
    options = StepOptions(0.1, jit_compile=jit_compile)
    guard = UpdateGuard(spike_factor=3.0, warm_up=3)
    step = make_train_step(model, optimizer, strategy, options, guard)
    found = []
    for number in range(UPDATES):
        before = _values(strategy, model, optimizer)
        results = step(_distribute(strategy, batch(number)))
        after = _values(strategy, model, optimizer)
        same = all(map(np.array_equal, before, after, [True] * len(before)))
        found.append({"skipped": bool(results["skipped"]), "same": same})
    return found


def _values(
    strategy: tf.distribute.Strategy, model: keras.Model, optimizer: keras.Optimizer
) -> list[np.ndarray]:
    """Return the variables of all replicas."""
    return [
        copy.numpy()
        for variable in (*model.trainable_variables, *optimizer.variables)
        for copy in strategy.experimental_local_results(variable.value)
    ]


def _distribute(
    strategy: tf.distribute.Strategy, values: dict[str, tf.Tensor]
) -> dict[str, Any]:
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return values
    rows = ROWS // replicas
    return strategy.experimental_distribute_values_from_function(
        lambda context: {
            name: ids[context.replica_id_in_sync_group * rows :][:rows]
            for name, ids in values.items()
        }
    )
