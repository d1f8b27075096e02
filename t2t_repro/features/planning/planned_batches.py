"""Plan the batches of a training run: their shapes, cost, and number per epoch.

This module imports no TensorFlow.
"""

from __future__ import annotations

import dataclasses

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.manifest import SplitCounts
from t2t_repro.errors import UserError
from t2t_repro.models.sizes import training_flops
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.update_size import UpdateSize


@dataclasses.dataclass(frozen=True)
class PlannedBatch:
    """A shape of global batches.

    Attributes:
        length: Padded length of both sides, in tokens.
        rows: Sentence pairs.
        flops: Floating-point operations of an update.
        batches: Number of batches of this shape in an epoch; None without data.
    """

    length: int
    rows: int
    flops: float
    batches: int | None


@dataclasses.dataclass(frozen=True)
class PlannedEpochs:
    """The training run in terms of the prepared data.

    Attributes:
        pairs: Training pairs that are not too long, copies included.
        left_out: Training pairs that are longer than `max_length`, copies included.
        copies_per_pair: Mean number of copies of a pair in the data.
        steps_per_epoch: Updates of one pass over the data, with all copies.
        epochs: Passes over the data, with all copies.
        target_tokens_per_step: Mean target tokens of an update, without padding.
    """

    pairs: int
    left_out: int
    copies_per_pair: float
    steps_per_epoch: int
    epochs: float
    target_tokens_per_step: float


def plan_batches(
    hparams: HParams, vocab_size: int, size: UpdateSize, counts: SplitCounts | None
) -> tuple[PlannedBatch, ...]:
    """Plan the shapes of the global batches.

    Args:
        hparams: The complete hparams.
        vocab_size: Size of the target vocabulary.
        size: How replicas and micro-batches share the tokens of an update.
        counts: Counts of the training split; None = the data is not prepared.
    """
    shapes = BatchPlan.for_training(hparams.replace(batch_size=size.tokens), size.parts)
    if shapes.packed_length:
        return (_packed_batch(hparams, vocab_size, shapes, counts),)
    shorter = (0, *shapes.boundaries)
    planned = []
    for below, length, rows in zip(
        shorter, shapes.boundaries, shapes.rows, strict=False
    ):
        batches = None
        if counts is not None:
            pairs = sum(counts.pairs_by_length[below + 1 : length + 1])
            batches = -(-pairs // rows)
        flops = training_flops(hparams, vocab_size, rows * length, length)
        planned.append(PlannedBatch(length, rows, flops, batches))
    return tuple(planned)


def _packed_batch(
    hparams: HParams, vocab_size: int, plan: BatchPlan, counts: SplitCounts | None
) -> PlannedBatch:
    """Plan packed rows as if the longer sides of the pairs filled both of their sides.

    With `packed_source_length`, training needs fewer operations and leaves out a few
    pairs, which the manifest cannot count.
    """
    ((rows, length),) = plan.shapes
    batches = None
    if counts is not None:
        pairs = counts.pairs_by_length[: hparams.max_length + 1]
        tokens = sum(length_ * count for length_, count in enumerate(pairs))
        batches = -(-tokens // (rows * length))
    flops = training_flops(hparams, vocab_size, rows * length, length)
    return PlannedBatch(length, rows, flops, batches)


def plan_epochs(
    hparams: HParams,
    settings: TrainSettings,
    batches: tuple[PlannedBatch, ...],
    counts: SplitCounts,
    was_reversed: bool,
) -> PlannedEpochs:
    """Express a training run in terms of its prepared data.

    Args:
        hparams: The complete hparams.
        settings: Settings of the training run.
        batches: Return value of `plan_batches`.
        counts: Counts of the training split.
        was_reversed: Whether inputs and targets are swapped when shards are read.

    Raises:
        UserError: If every training pair is too long.
    """
    left_out = counts.longer_than(hparams.max_length)
    steps = sum(batch.batches or 0 for batch in batches)
    if not steps:
        raise UserError(
            f"no training pair is short enough: received max_length="
            f"{hparams.max_length}."
        )
    subwords = counts.source_subwords if was_reversed else counts.target_subwords
    # The manifest does not tell how many subwords of either side are left out.
    kept = _subwords(counts, hparams.max_length) / _subwords(counts, None)
    return PlannedEpochs(
        pairs=counts.pairs_written - left_out,
        left_out=left_out,
        copies_per_pair=counts.pairs_written / counts.pairs_kept,
        steps_per_epoch=steps,
        epochs=settings.train_steps / steps,
        target_tokens_per_step=subwords * kept / steps,
    )


def _subwords(counts: SplitCounts, longest: int | None) -> int:
    """Return the subwords on the longer sides of pairs up to a length."""
    end = None if longest is None else longest + 1
    return sum(n * pairs for n, pairs in enumerate(counts.pairs_by_length[:end]))


def _weighted(batches: tuple[PlannedBatch, ...]) -> list[tuple[int, PlannedBatch]]:
    """Return the weight of every shape in a mean: its batches in an epoch, or 1."""
    return [(1 if b.batches is None else b.batches, b) for b in batches]


def mean_flops(batches: tuple[PlannedBatch, ...]) -> float:
    """Return the mean floating-point operations of an update."""
    weighted = _weighted(batches)
    return sum(n * b.flops for n, b in weighted) / sum(n for n, _ in weighted)


def mean_positions(batches: tuple[PlannedBatch, ...]) -> float:
    """Return the mean target positions of an update, padding included."""
    weighted = _weighted(batches)
    positions = sum(n * b.rows * b.length for n, b in weighted)
    return positions / sum(n for n, _ in weighted)
