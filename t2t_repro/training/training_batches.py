"""Read the batches of a training run, epoch after epoch, from its position."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorflow as tf

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import Batch, readable, training_epoch
from t2t_repro.errors import UserError
from t2t_repro.training.loop_options import TrainingData
from t2t_repro.training.training_checkpoints import TrainingCheckpoints
from t2t_repro.training.workers import Workers


class TrainingBatches:
    """Batches of this worker's replicas.

    Args:
        data: The training data.
        seed: Seed of the order of the data.
        strategy: The strategy of the replicas.
        workers: The processes of the strategy.
        checkpoints: Hold the position: the epoch, and the batches already used in it.
            The training loop counts the batches.
    """

    def __init__(
        self,
        data: TrainingData,
        seed: int,
        strategy: tf.distribute.Strategy,
        workers: Workers,
        checkpoints: TrainingCheckpoints,
    ) -> None:
        self.data = data
        self.seed = seed
        self.strategy = strategy
        self.workers = workers
        self.checkpoints = checkpoints

    def from_position(self, step: Callable[[], int]) -> Iterator[Batch]:
        """Yield distributed batches from the current position, without end.

        Args:
            step: Returns the number of completed updates.

        Raises:
            UserError: If there is no batch, or a record cannot be read.
        """
        while True:
            before = step()
            yield from readable(self.epoch(), step)
            if step() == before and int(self.checkpoints.batches.numpy()) == 0:
                raise UserError(
                    "no training pair is short enough: received "
                    f"{_limits(self.data.plan)}."
                )
            self.checkpoints.epoch.assign_add(1)
            self.checkpoints.batches.assign(0)

    def epoch(self) -> tf.distribute.DistributedDataset | tf.data.Dataset:
        """Return the rest of the current epoch."""
        replicas = self.strategy.num_replicas_in_sync
        first = self.workers.first_replica
        dataset = training_epoch(
            self.data.shards,
            self.data.plan,
            seed=self.seed,
            epoch=int(self.checkpoints.epoch.numpy()),
            skip_batches=int(self.checkpoints.batches.numpy()),
            num_replicas=replicas,
            replicas_here=slice(first, first + self.workers.replicas_here),
        )
        if replicas == 1:
            return dataset
        return self.strategy.distribute_datasets_from_function(lambda _: dataset)


def _limits(plan: BatchPlan) -> str:
    """Return the settings that leave out long pairs."""
    longest = f"max_length={plan.boundaries[-1]}"
    if not plan.packed_source_length:
        return longest
    return f"{longest}, packed_source_length={plan.packed_source_length}"
