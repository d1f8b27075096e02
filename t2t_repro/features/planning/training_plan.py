"""Plan a training run: its size, batches, cost and memory, before it begins.

This module imports no TensorFlow, so planning takes no time. `timing.py` measures the
time of an update.
"""

from __future__ import annotations

import dataclasses

from t2t_repro.constants import SELF_ATTENTIONS
from t2t_repro.data.batch_plan import BatchPlan, UpdateSize
from t2t_repro.data.manifest import Manifest, SplitCounts
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.models.estimates import (
    FLOAT32,
    TrainingMemory,
    embedding_count,
    optimizer_slots,
    parameter_count,
    training_flops,
    training_memory,
)
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.settings.train_settings import TrainSettings


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
        size: Size of an update.
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


PLANNED_MODEL = "transformer"
# Of SymbolTokenizer: padding, end of sentence, unknown.
SPECIAL_SYMBOLS = 3


@dataclasses.dataclass(frozen=True)
class PlannedDisk:
    """Bytes on the disk at the end of a training run.

    Attributes:
        checkpoint: Bytes of one checkpoint: weights and the optimizer's values.
        checkpoints: Number of checkpoints, including the one that is being written.
        weights_only: Bytes of the best models and the averaged one together.
    """

    checkpoint: int
    checkpoints: int
    weights_only: int

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return self.checkpoint * self.checkpoints + self.weights_only


@dataclasses.dataclass(frozen=True)
class TrainingPlan:
    """Size and cost of a training run.

    Attributes:
        problem: Name of the problem.
        hparams_set: Name of the hparams set.
        vocab_sizes: Sizes of the source and target vocabulary.
        shared_vocabulary: Whether both sides share one vocabulary.
        parameters: Number of trained values.
        embedding_parameters: Number of them in embeddings and softmax.
        train_steps: Number of updates.
        update: Replicas, tokens and steps of an update.
        batches: Shapes of the batches, shortest first.
        single_pass_steps: Updates of one pass before those of R-Drop have two.
        flops_per_step: Mean floating-point operations of an update: over an epoch, or
            over the shapes without data.
        flops_per_target_token: The same per target token, without padding if there is
            data, else per target position.
        memory: Bytes of an update on one replica with the largest batch.
        epochs: The training run in terms of the data; None without data.
        disk: Bytes on the disk.
    """

    problem: str
    hparams_set: str
    vocab_sizes: tuple[int, int]
    shared_vocabulary: bool
    parameters: int
    embedding_parameters: int
    train_steps: int
    update: UpdateSize
    batches: tuple[PlannedBatch, ...]
    single_pass_steps: int
    flops_per_step: float
    flops_per_target_token: float
    memory: TrainingMemory
    epochs: PlannedEpochs | None
    disk: PlannedDisk

    @property
    def typical_batch(self) -> PlannedBatch:
        """The shape of most batches of an epoch or, without data, of middle length."""
        if self.epochs is None:
            return self.batches[len(self.batches) // 2]
        return max(self.batches, key=lambda batch: batch.batches or 0)


def plan_training(
    problem: Problem,
    settings: TrainSettings,
    hparams: HParams,
    preparation: PrepareSettings,
    manifest: Manifest | None = None,
    num_replicas: int = 1,
) -> TrainingPlan:
    """Plan a training run with the model `transformer`.

    Args:
        problem: The problem.
        settings: Settings of the training run.
        hparams: Its hparams; see `resolved_hparams`.
        preparation: Settings of the preparation, for the vocabulary of data that is
            not prepared yet.
        manifest: Description of the prepared data, or None.
        num_replicas: Replicas that share a global batch.

    Raises:
        UserError: If the model or its attention is the user's own, or the size of the
            vocabulary is not known before the data is prepared.
        UsageError: If an hparam is refused, such as a too small `update_tokens`.
    """
    _check_countable(settings, hparams)
    sizes, shared = _vocabularies(problem, preparation, manifest)
    hparams = hparams.for_vocabularies(shared=shared)
    parameters = parameter_count(hparams, *sizes)
    counts = None if manifest is None else manifest.splits["train"]
    size = UpdateSize.of(hparams, num_replicas)
    batches = plan_batches(hparams, sizes[1], size, counts)
    epochs = (
        None
        if counts is None
        else plan_epochs(hparams, settings, batches, counts, problem.was_reversed)
    )
    single_pass_steps = 0
    if hparams.rdrop_weight:
        # The batches have the operations of two passes.
        single_pass_steps = min(hparams.rdrop_after_steps, settings.train_steps)
    single_pass_share = single_pass_steps / settings.train_steps
    flops = mean_flops(batches) * (1 - single_pass_share / 2)
    target_tokens = (
        mean_positions(batches) if epochs is None else epochs.target_tokens_per_step
    )
    return TrainingPlan(
        problem=problem.name,
        hparams_set=settings.hparams_set,
        vocab_sizes=sizes,
        shared_vocabulary=shared,
        parameters=parameters,
        embedding_parameters=embedding_count(hparams, *sizes),
        train_steps=settings.train_steps,
        update=size,
        batches=batches,
        single_pass_steps=single_pass_steps,
        flops_per_step=flops,
        flops_per_target_token=flops / target_tokens,
        memory=_largest_memory(hparams, sizes, batches, size),
        epochs=epochs,
        disk=_disk(settings, hparams, parameters),
    )


def _check_countable(settings: TrainSettings, hparams: HParams) -> None:
    """Refuse models whose layers this module does not know."""
    if settings.model != PLANNED_MODEL:
        raise UserError(
            f"received model={settings.model}, expected {PLANNED_MODEL}: the layers of "
            "other models cannot be counted before they are built."
        )
    if hparams.self_attention_type not in SELF_ATTENTIONS:
        raise UserError(
            f"received self_attention_type={hparams.self_attention_type}, expected one "
            f"of {', '.join(SELF_ATTENTIONS)}: the weights of other attentions cannot "
            "be counted before they are built."
        )


def _vocabularies(
    problem: Problem, preparation: PrepareSettings, manifest: Manifest | None
) -> tuple[tuple[int, int], bool]:
    """Return the sizes of both vocabularies, and whether they are the same one."""
    if manifest is not None:
        names, sizes = manifest.tokenizers, manifest.vocab_sizes
        pair = (sizes["inputs"], sizes["targets"])
        swapped = (pair[1], pair[0]) if problem.was_reversed else pair
        return swapped, names["inputs"] == names["targets"]
    kind = problem.vocabulary.kind
    if kind == "symbols":
        size = len(problem.vocabulary.symbols) + SPECIAL_SYMBOLS
        return (size, size), True
    own = preparation.source_model or preparation.target_model
    if kind != "subwords" or own:
        raise UserError(
            f"the size of the vocabulary of {problem.name} is not known before its "
            "data is prepared: prepare it with `t2t datagen`, and give its data_dir."
        )
    size = preparation.vocab_size
    return (size, size), preparation.shared_vocabulary


def _largest_memory(
    hparams: HParams,
    sizes: tuple[int, int],
    batches: tuple[PlannedBatch, ...],
    size: UpdateSize,
) -> TrainingMemory:
    """Return the largest memory of any batch, whose micro-batches run one by one."""
    return max(
        (
            training_memory(
                hparams,
                *sizes,
                rows=batch.rows // size.parts,
                length=batch.length,
                micro_batches=size.micro_batches,
            )
            for batch in batches
        ),
        key=lambda memory: memory.total,
    )


def _disk(settings: TrainSettings, hparams: HParams, parameters: int) -> PlannedDisk:
    weights = FLOAT32 * parameters
    saved = -(-settings.train_steps // (settings.steps_between_checkpoints or 1))
    kept = min(settings.checkpoints_to_keep, saved) + 1
    evaluated = settings.eval_sentences > 0
    # The best model is kept beside the best ones.
    best = settings.keep_best + 1 if settings.keep_best > 1 else 1
    averaged = settings.average_last > 1 or hparams.ema_decay > 0
    models = evaluated * best + averaged
    return PlannedDisk(
        checkpoint=(1 + optimizer_slots(hparams)) * weights,
        checkpoints=kept,
        weights_only=models * weights,
    )
