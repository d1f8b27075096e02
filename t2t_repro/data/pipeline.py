"""TFRecord shards to padded batches of equal token counts, with `tf.data`.

tensor2tensor: `utils/data_reader.py`. The order of the data is a function of the
seed and the epoch only, so a resumed run sees the same data as one that never stopped.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import tensorflow as tf

from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.packing import PACKED_FEATURES, batch_packed
from t2t_repro.errors import UserError

Batch = dict[str, tf.Tensor]
# Any number of rows and tokens, so that a function of batches is traced once.
BATCH_SIGNATURE = {
    name: tf.TensorSpec([None, None], tf.int32, name=name) for name in (INPUTS, TARGETS)
}
PACKED_SIGNATURE = {
    name: tf.TensorSpec([None, None], tf.int32, name=name) for name in PACKED_FEATURES
}

SHUFFLE_BUFFER = 2**17  # examples; about 40 MB at 30 tokens per side
PARSE_BLOCK = 512  # records parsed by one call
PARALLEL_PARSES = 2  # calls at the same time
BATCHES_AHEAD = 8  # batches that wait for the training step


@dataclasses.dataclass(frozen=True)
class Shards:
    """TFRecord files of `tf.train.Example` with int64 lists "inputs" and "targets".

    Attributes:
        paths: Paths of the files.
        swap_sides: Whether to exchange inputs and targets when reading, for a `_rev`
            problem on the files of its base.
    """

    paths: tuple[str, ...]
    swap_sides: bool = False


def read_examples(shards: Shards) -> tf.data.Dataset:
    """Read pairs in the order of the shards.

    Args:
        shards: Files to read.

    Returns:
        Dataset of {"inputs": int32 `[length]`, "targets": int32 `[length]`}.
    """
    features = {name: tf.io.RaggedFeature(tf.int64) for name in (INPUTS, TARGETS)}

    def parse(records: tf.Tensor) -> dict[str, tf.RaggedTensor]:
        parsed = tf.io.parse_example(records, features)
        inputs, targets = (tf.cast(parsed[k], tf.int32) for k in (INPUTS, TARGETS))
        return (
            {INPUTS: targets, TARGETS: inputs}
            if shards.swap_sides
            else {INPUTS: inputs, TARGETS: targets}
        )

    return (
        tf.data.TFRecordDataset(list(shards.paths))
        .batch(PARSE_BLOCK)
        .map(parse, num_parallel_calls=PARALLEL_PARSES, deterministic=True)
        .unbatch()
        .map(lambda pair: {name: tf.convert_to_tensor(x) for name, x in pair.items()})
    )


def longer_side(pair: Batch) -> tf.Tensor:
    """Return the length of the longer side of a pair, in tokens, int32 scalar."""
    return tf.maximum(tf.size(pair[INPUTS]), tf.size(pair[TARGETS]))


def batch_by_length(examples: tf.data.Dataset, plan: BatchPlan) -> tf.data.Dataset:
    """Group pairs into batches of the plan's shapes, and leave out longer pairs.

    A bucket that is not full when the examples end is filled with rows of padding,
    which have no target tokens and therefore no weight. Differs from tensor2tensor
    (`utils/data_reader.py`), which repeats the data without end: here, an epoch has
    every pair once, in few shapes.

    Args:
        examples: Pairs of `read_examples`.
        plan: Shapes of the batches.

    Returns:
        Dataset of {"inputs", "targets"}, each int32 `[rows, boundary]`.
    """
    boundaries = tf.constant(plan.boundaries)
    rows = tf.constant(plan.rows)

    def fill(batch: Batch) -> Batch:
        length = tf.shape(batch[INPUTS])[1]
        wanted = rows[tf.searchsorted(boundaries, length[None])[0]]
        missing = wanted - tf.shape(batch[INPUTS])[0]
        return {k: tf.pad(x, [[0, missing], [0, 0]]) for k, x in batch.items()}

    return (
        examples.filter(lambda pair: _is_short(pair, plan))
        .bucket_by_sequence_length(
            longer_side,
            # exclusive upper bounds; padding goes to the bound minus one
            bucket_boundaries=[boundary + 1 for boundary in plan.boundaries],
            bucket_batch_sizes=[*plan.rows, 1],
            pad_to_bucket_boundary=True,
        )
        .map(fill)
    )


def training_epoch(
    shards: Shards,
    plan: BatchPlan,
    *,
    seed: int,
    epoch: int,
    skip_batches: int = 0,
    num_replicas: int = 1,
    replicas_here: slice = slice(None),
) -> tf.data.Dataset:
    """Batch the training data once, in an order fixed by seed and epoch.

    Args:
        shards: Files of the training split.
        plan: Shapes of the global batches.
        seed: Seed of the run.
        epoch: Number of the epoch, counted from 0.
        skip_batches: Number of global batches of this epoch that are already done.
        num_replicas: Number of equal parts of each global batch, one per replica.
        replicas_here: Replicas of this process, the only ones whose parts are returned.

    Returns:
        Dataset of {"inputs", "targets"}, int32 `[rows / num_replicas, boundary]`, or of
        the `PACKED_FEATURES`, int32 `[rows / num_replicas, length]` with the plan's
        `packed_lengths`.
    """
    order = tf.random.experimental.stateless_shuffle(
        tf.constant(list(shards.paths)), seed=[seed, epoch]
    )
    paths = tuple(path.decode() for path in order.numpy())
    examples = read_examples(dataclasses.replace(shards, paths=paths))
    # TensorFlow also mixes in its global seed, which a run sets to the same number.
    examples = examples.shuffle(
        SHUFFLE_BUFFER,
        seed=seed * 1_000_003 + epoch,
        reshuffle_each_iteration=False,
    )
    batches = _batches(examples, plan, (seed, epoch)).skip(skip_batches)
    if num_replicas > 1:
        batches = batches.flat_map(
            lambda batch: _split_rows(batch, num_replicas, replicas_here)
        )
    return _prefetch(batches)


def _prefetch(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Prepare some batches ahead of their use, without tf.data's autotuning.

    Autotuning runs in a thread that sleeps for up to a minute at a time. When an epoch
    of more than a minute ends, its iterator can have to wait for that thread: 19 s were
    measured with TensorFlow 2.21 (docs/performance.md). The numbers here are fixed, so
    there is nothing to tune.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.prefetch(BATCHES_AHEAD).with_options(options)


def _batches(
    examples: tf.data.Dataset, plan: BatchPlan, seed: tuple[int, int]
) -> tf.data.Dataset:
    if not plan.packed_length:
        return batch_by_length(examples, plan)
    fitting = examples.filter(
        lambda pair: _is_short(pair, plan) & _source_fits(pair, plan)
    )
    return batch_packed(fitting, plan.packed_lengths, plan.rows[0], seed)


def _is_short(pair: Batch, plan: BatchPlan) -> tf.Tensor:
    return longer_side(pair) <= plan.boundaries[-1]


def _source_fits(pair: Batch, plan: BatchPlan) -> tf.Tensor:
    """Return whether the source side of a packed row holds a pair's source."""
    return tf.size(pair[INPUTS]) <= plan.packed_lengths[0]


def left_out_by_packing(shards: Shards, plan: BatchPlan) -> tf.data.Dataset:
    """Return the pairs that are short enough, but have too long sources to be packed.

    Args:
        shards: Files of the training split.
        plan: Shapes of the global batches.

    Returns:
        Dataset of {"inputs", "targets"}, int32 `[length]`.
    """
    return read_examples(shards).filter(
        lambda pair: _is_short(pair, plan) & ~_source_fits(pair, plan)
    )


def _split_rows(batch: Batch, parts: int, wanted: slice) -> tf.data.Dataset:
    """Cut a batch into `parts` batches of neighbouring rows, and return some."""

    def cut(x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [parts, -1, tf.shape(x)[1]])[wanted]

    return tf.data.Dataset.from_tensor_slices({k: cut(x) for k, x in batch.items()})


def evaluation_batches(shards: Shards, plan: BatchPlan) -> tf.data.Dataset:
    """Batch a development set once, in the order of its shards.

    Args:
        shards: Files of the split.
        plan: Shapes of the batches.

    Returns:
        Dataset of {"inputs", "targets"}, int32 `[rows, boundary]`.
    """
    return _prefetch(batch_by_length(read_examples(shards), plan))


Item = TypeVar("Item")

# A record with a wrong checksum or a file that is cut short; a file that has vanished
# or may not be read.
_READ_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
)
# TensorFlow adds them to the reason.
_NAMES_OF_OPERATIONS = re.compile(r"\[\[.*?\]\]|\{\{.*?\}\}|\[Op:.*", flags=re.DOTALL)


def readable(
    items: Iterable[Item], completed: Callable[[], int] | None = None
) -> Iterator[Item]:
    """Yield what is read from shards, and report shards that cannot be read.

    Args:
        items: Pairs or batches of prepared data.
        completed: During training, returns the number of completed updates, for the
            message.

    Raises:
        UserError: If a shard is damaged or has vanished.
    """
    try:
        # An error of the code that takes the items is not raised here.
        yield from items
    except _READ_ERRORS as error:
        reason = _NAMES_OF_OPERATIONS.sub("", error.message).strip()
        when = "" if completed is None else f" after step {completed()}"
        raise UserError(
            f"cannot read the prepared data{when}: {reason}.\nRestore the files from a "
            "copy, or prepare the same data again; then repeat the command. Training "
            "resumes where it was."
        ) from error
