"""Read the batches of a training run, and record the first ones of each shape."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.packing import pack_pairs
from t2t_repro.data.pipeline import Batch, Shards, readable, training_epoch
from t2t_repro.errors import UserError
from t2t_repro.text_tables import quantity
from t2t_repro.training.cluster import Workers
from t2t_repro.training.training_state import TrainingCheckpoints

logger = logging.getLogger(__name__)


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


class OutOfMemoryError(UserError):
    """Error raised when the largest batch does not fit into the memory of a device."""


def largest_shape(plan: BatchPlan) -> tuple[int, int]:
    """Return the rows and the length of the batches with the most tokens.

    Of equal ones, those of the longest sentences, whose attention is largest. With a
    small `batch_size`, one sentence of `max_length` has fewer tokens than others.
    """
    return max(plan.shapes, key=lambda shape: (shape[0] * shape[1], shape[1]))


def try_largest_batch(
    train_step: Callable[[Batch], dict[str, tf.Tensor]],
    plan: BatchPlan,
    strategy: tf.distribute.Strategy,
    variables: Sequence[tf.Variable],
    advice: Callable[[], str],
    *,
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """Make an update on a batch with the most tokens, and undo it.

    All variables get their values back, on every replica, so the run is the same as
    without the trial. The compiled step is the one that training uses.

    Args:
        train_step: Return value of `make_train_step`.
        plan: Shapes of the global batches.
        strategy: The strategy of the replicas.
        variables: All variables that the step changes.
        advice: Returns the last sentence of the error's message.
        prepare: Called before the update; may change the variables, so that the update
            is one that needs the most memory.

    Raises:
        OutOfMemoryError: If the memory of a device is too small.
    """
    rows, length = largest_shape(plan)
    replicas = strategy.num_replicas_in_sync
    start = time.perf_counter()
    with _preserve_values(variables, strategy):
        try:
            prepare()
            batch = _global_batch(
                _full_batch(rows // replicas, length, plan),
                strategy,
            )
            train_step(batch)["loss"].numpy()
        except tf.errors.ResourceExhaustedError as error:
            raise OutOfMemoryError(
                "the memory is too small for the largest batch, "
                f"{quantity(rows, 'row')} of {quantity(length, 'token')} on {replicas} "
                f"replica(s).\n{advice()}"
            ) from error
    logger.info(
        "the largest batch fits: %s of %s, tried in %.1f s",
        quantity(rows, "row"),
        quantity(length, "token"),
        time.perf_counter() - start,
    )


@contextlib.contextmanager
def _preserve_values(
    variables: Sequence[tf.Variable], strategy: tf.distribute.Strategy
) -> Generator[None]:
    """Keep the values of variables in the memory of the host, and restore them."""
    copies = [
        copy
        for variable in variables
        for copy in strategy.experimental_local_results(variable)
    ]
    values = [copy.numpy() for copy in copies]
    try:
        yield
    finally:
        for copy, value in zip(copies, values, strict=True):
            copy.assign(value)


def _full_batch(rows: int, length: int, plan: BatchPlan) -> Batch:
    """Return a batch without padding, int32 `[rows, length]` per feature.

    Packed rows have a single pair, which is as large as several.
    """
    text = [np.full(length, EOS_ID, np.int32)] * rows
    if plan.packed_length:
        source_length, _ = plan.packed_lengths
        sources = [ids[:source_length] for ids in text]
        features = pack_pairs(sources, text, plan.packed_lengths, seed=0)
    else:
        features = {INPUTS: np.stack(text), TARGETS: np.stack(text)}
    return {name: tf.constant(x) for name, x in features.items()}


def _global_batch(batch: Batch, strategy: tf.distribute.Strategy) -> Batch:
    if strategy.num_replicas_in_sync == 1:
        return batch
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    return next(
        iter(strategy.distribute_datasets_from_function(lambda _: dataset)),
    )


class FirstUpdates:
    """Record of the updates that are the first of their kind.

    XLA compiles the step for every shape of batches. Without XLA, TensorFlow traces it
    once for all shapes.

    Args:
        strategy: The strategy of the replicas.
        num_shapes: Number of shapes that global batches can have.
        jit_compile: Whether XLA compiles the step.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy, num_shapes: int, *, jit_compile: bool
    ) -> None:
        self._strategy = strategy
        self._num_shapes = num_shapes
        self._jit_compile = jit_compile
        self._seen: set[int] = set()

    def begin(self, batch: Batch) -> str | None:
        """Return a description of the next update if it is a first one, else None.

        Args:
            batch: The (distributed) batch of the update.

        Returns:
            Such as "compiling shape 3 of 6: 64 x 32 (rows x length)".
        """
        (ids, *_) = self._strategy.experimental_local_results(batch[TARGETS])
        rows, length = ids.shape
        if length in self._seen or (self._seen and not self._jit_compile):
            return None
        self.add(length)
        if not self._jit_compile:
            return "tracing the training step"
        rows *= self._strategy.num_replicas_in_sync
        number = f"{len(self._seen)} of {self._num_shapes}"
        return f"compiling shape {number}: {rows} x {length} (rows x length)"

    def add(self, length: int) -> None:
        """Record an update on a batch of this length, which no two shapes share."""
        self._seen.add(length)


def timed_update(
    step: Callable[[Batch], dict[str, tf.Tensor]],
    batch: Batch,
    iterations: keras.Variable,
) -> tuple[dict[str, tf.Tensor], float]:
    """Make an update, and return its metrics and its duration in seconds.

    Args:
        step: Makes an update.
        batch: The batch of the update.
        iterations: The optimizer's number of updates.
    """
    # Wait for the updates that a GPU is still computing: their time is not this one's.
    # TensorFlow's `sync_devices` fails if there are several workers.
    iterations.numpy()
    start = time.monotonic()
    results = step(batch)
    float(results["loss"])  # wait for the update
    return results, time.monotonic() - start


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """The shards to train on and the shapes of their batches.

    Attributes:
        shards: Files of the training split.
        plan: Shapes of global batches.
    """

    shards: Shards
    plan: BatchPlan
