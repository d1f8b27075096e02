"""Try the largest batch before training, so that it fails at once if it must fail."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.packing import pack_pairs
from t2t_repro.data.pipeline import Batch
from t2t_repro.errors import UserError
from t2t_repro.text_tables import quantity

logger = logging.getLogger(__name__)


class OutOfMemoryError(UserError):
    """The largest batch does not fit into the memory of the device."""


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
    with _unchanged(variables, strategy):
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
def _unchanged(
    variables: Sequence[tf.Variable], strategy: tf.distribute.Strategy
) -> Iterator[None]:
    """Give variables their values back, which are kept in the memory of the host."""
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
