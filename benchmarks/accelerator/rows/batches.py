"""Prepared data as a corpus: the pairs, and the batches of several seeds.

Needs TensorFlow.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.accelerator.rows.corpus import Corpus, Order, Texts
from t2t_repro.constants import (
    INPUTS,
    INPUTS_SEGMENTATION,
    PAD_ID,
    TARGETS,
    TARGETS_SEGMENTATION,
)
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import read_examples, training_epoch
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.pieces import cut
from t2t_repro.decoding.sentences import longest_piece
from t2t_repro.errors import UserError
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.setup import make_repeatable

Batch = Mapping[str, np.ndarray]
PairNumbers = Mapping[tuple[bytes, bytes], int]


@dataclasses.dataclass(frozen=True)
class BatchPairs:
    """The pairs of a batch.

    Attributes:
        shape: Number of the batch's shape.
        rows: Row of each pair.
        pairs: Number of each pair.
    """

    shape: int
    rows: list[int]
    pairs: list[int]


def export_corpus(
    data: PreparedData,
    hparams: HParams,
    seeds: Iterable[int],
    steps: int,
    *,
    splits: Sequence[str] = ("dev", "test"),
) -> Corpus:
    """Return prepared data and the batches of several seeds.

    The seeds share the order of the shapes, which is that of the first seed, so that
    one compiled update can train all of them. Otherwise, each has the batches of `t2t
    train` with that seed, in their order within each shape.

    Args:
        data: The prepared data.
        hparams: Hparams of the batches and of the model.
        seeds: Seeds of the order of the data.
        steps: Number of batches.
        splits: Splits to translate.
    """
    plan = BatchPlan.for_training(hparams)
    pairs = _pairs(data, "train")
    numbers = {_key(*pair): number for number, pair in enumerate(pairs)}
    orders: dict[int, Order] = {}
    for seed in seeds:
        batches = training_batches(data, plan, seed)
        found = (pairs_of_batch(batch, plan, numbers) for batch in batches)
        if orders:
            shapes = next(iter(orders.values())).shapes.tolist()
            found = in_order_of_shapes(found, shapes)
        orders[seed] = _order(itertools.islice(found, steps))
    return Corpus(
        sides=_sides(pairs),
        shapes=_shapes(plan),
        packed=bool(plan.packed_length),
        orders=orders,
        dev=_sides(_pairs(data, "dev")),
        sources=Texts.of(source_pieces(data, hparams.max_length, splits)),
        data_digest=data.digest,
    )


def training_batches(
    data: PreparedData, plan: BatchPlan, seed: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the batches of `t2t train` without end."""
    make_repeatable(seed, deterministic=False)
    for epoch in itertools.count():
        dataset = training_epoch(data.shards("train"), plan, seed=seed, epoch=epoch)
        yield from dataset.as_numpy_iterator()


def pairs_of_batch(batch: Batch, plan: BatchPlan, numbers: PairNumbers) -> BatchPairs:
    """Find the pairs of a batch.

    Args:
        batch: The batch, with a pair or several packed pairs per row.
        plan: Shapes of the batches.
        numbers: Number of each pair by its ids.
    """
    inputs, targets = batch[INPUTS], batch[TARGETS]
    sources = batch.get(INPUTS_SEGMENTATION, (inputs != PAD_ID).astype(int))
    segments = batch.get(TARGETS_SEGMENTATION, (targets != PAD_ID).astype(int))
    rows, pairs = [], []
    for row in range(len(targets)):
        for segment in range(1, int(segments[row].max(initial=0)) + 1):
            source = inputs[row][sources[row] == segment]
            target = targets[row][segments[row] == segment]
            rows.append(row)
            pairs.append(_number(numbers, source, target))
    return BatchPairs(plan.shapes.index(targets.shape), rows, pairs)


def _number(numbers: PairNumbers, source: np.ndarray, target: np.ndarray) -> int:
    """Return the number of a pair.

    Raises:
        UserError: If there is none, because the data is sampled.
    """
    number = numbers.get(_key(source, target))
    if number is None:
        raise UserError(
            "a batch has a pair that is not in the prepared text: data with several "
            "copies of each pair cannot be exported."
        )
    return number


def in_order_of_shapes(
    batches: Iterator[BatchPairs], shapes: Iterable[int]
) -> Iterator[BatchPairs]:
    """Yield, for each shape in turn, the next batch that has it."""
    waiting: dict[int, deque[BatchPairs]] = {}
    for shape in shapes:
        while not waiting.get(shape):
            batch = next(batches)
            waiting.setdefault(batch.shape, deque()).append(batch)
        yield waiting[shape].popleft()


def source_pieces(
    data: PreparedData, max_length: int, splits: Iterable[str]
) -> list[tuple[int, ...]]:
    """Return the ids of every piece of the sources of some splits, each once.

    Args:
        data: The prepared data.
        max_length: Hparam of the model.
        splits: The splits.
    """
    tokenizer, _ = data.tokenizers()
    longest = longest_piece(max_length)
    found = {}
    for split in splits:
        sources, _ = data.raw_text(split)
        texts = [*map(data.problem.normalize_source, sources)]
        for ids in tokenizer.encode_batch(texts):
            found |= {tuple(piece.ids): None for piece in cut(ids, longest, 0, [])}
    return list(found)


def _pairs(data: PreparedData, split: str) -> list[tuple[np.ndarray, np.ndarray]]:
    examples = read_examples(data.shards(split)).as_numpy_iterator()
    return [(pair[INPUTS], pair[TARGETS]) for pair in examples]


def _key(source: np.ndarray, target: np.ndarray) -> tuple[bytes, bytes]:
    return source.astype(np.int32).tobytes(), target.astype(np.int32).tobytes()


def _sides(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, Texts]:
    columns = zip(*pairs, strict=True)
    return {
        side: Texts.of(texts)
        for side, texts in zip((INPUTS, TARGETS), columns, strict=True)
    }


def _shapes(plan: BatchPlan) -> list[tuple[int, int, int]]:
    """Return rows and tokens of both sides of every kind of batch."""
    if plan.packed_length:
        return [(plan.rows[0], *plan.packed_lengths)]
    return [(rows, length, length) for rows, length in plan.shapes]


def _order(batches: Iterable[BatchPairs]) -> Order:
    found = list(batches)
    return Order(
        np.array([batch.shape for batch in found]),
        np.array([len(batch.pairs) for batch in found]),
        np.array([*itertools.chain(*(batch.rows for batch in found))]),
        np.array([*itertools.chain(*(batch.pairs for batch in found))]),
    )
