"""Train with this package as `t2t train` does: its batches, its step, XLA.

Arguments: folder of `data.py`, hparams set, changes to the set, threads. The request
"matmul" measures the rate of a large product of matrices.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from our_trainer import epoch, load_trainer
from worker import Counts, serve

from t2t_repro.constants import INPUTS, PAD_ID, TARGETS
from t2t_repro.data.pipeline import Batch
from t2t_repro.machine import keep_freed_memory
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.loop import Trainer

MATMUL_SIZE = 2048
MATMULS = 10


def warm_up(trainer: Trainer) -> int:
    """Make an update with a batch of every shape of an epoch, which XLA compiles."""
    batches = {
        (*batch[INPUTS].shape, *batch[TARGETS].shape): batch
        for batch in epoch(trainer, 0)
    }
    for batch in batches.values():
        trainer.train_step(batch)["loss"].numpy()
    return len(batches)


def updates(trainer: Trainer) -> Iterator[Counts]:
    """Make one update after the other."""
    for number in itertools.count():
        for batch in epoch(trainer, number):
            trainer.train_step(batch)["loss"].numpy()
            yield counts(batch)


def counts(batch: Batch) -> Counts:
    """Count the positions and the real tokens of a batch."""
    source, target = (batch[side].numpy() for side in (INPUTS, TARGETS))
    tokens = (int(np.count_nonzero(ids != PAD_ID)) for ids in (source, target))
    return (len(target), source.shape[1], target.shape[1], *tokens)


def matmul_rate() -> dict[str, float]:
    """Return the operations per second of large matrix products."""
    square = tf.random.normal((MATMUL_SIZE, MATMUL_SIZE), seed=1)
    tf.matmul(square, square).numpy()
    start = time.perf_counter()
    for _ in range(MATMULS):
        tf.matmul(square, square).numpy()
    seconds = time.perf_counter() - start
    return {"rate": MATMULS * 2 * MATMUL_SIZE**3 / seconds}


def main(data_dir: str, hparams_set: str, hparams: str, threads: str) -> None:
    """Make the trainer and serve."""
    keep_freed_memory()
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    with tempfile.TemporaryDirectory() as output_dir:
        settings = TrainSettings(
            output_dir=output_dir, hparams_set=hparams_set, hparams=hparams
        )
        trainer = load_trainer(data_dir, settings)
        serve(
            lambda: warm_up(trainer), updates(trainer), others={"matmul": matmul_rate}
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
