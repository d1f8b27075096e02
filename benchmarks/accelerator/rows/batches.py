"""Prepared data as a corpus, with the batches of several seeds; needs TensorFlow."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.accelerator.rows.corpus import SIDES, Corpus, Texts
from t2t_repro.constants import (
    INPUTS,
    INPUTS_SEGMENTATION,
    PAD_ID,
    TARGETS,
    TARGETS_SEGMENTATION,
)
from t2t_repro.data.batch_plan import BatchPlan, UpdateSize
from t2t_repro.data.pipeline import read_examples, training_epoch
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.sentences import longest_piece
from t2t_repro.decoding.source_pieces import cut
from t2t_repro.errors import UserError
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.cluster import make_repeatable

Batch = Mapping[str, np.ndarray]
# The kind of a batch, and row and number of its pairs.
Contents = tuple[int, list[tuple[int, int]]]
# Complete passes over the data, and batches of the next one.
Position = tuple[int, int]


def batch_plan(hparams: HParams) -> BatchPlan:
    """Return the plan of a training run's updates, each of them one batch."""
    size = UpdateSize.of(hparams, 1)
    return BatchPlan.for_training(hparams.replace(batch_size=size.tokens), size.parts)


def export_corpus(
    data: PreparedData,
    hparams: HParams,
    seeds: Sequence[int],
    updates: int,
    *,
    splits: Sequence[str] = ("dev", "test"),
    start: Position = (0, 0),
) -> tuple[Corpus, Position]:
    """Return prepared data and the batches of several seeds.

    The seeds share the order of the kinds, which is that of the first seed, so that one
    compiled update can train all of them. Otherwise, each has the batches of `t2t
    train` with that seed, in their order within each kind.

    Args:
        data: The prepared data.
        hparams: Hparams of the batches and of the model.
        seeds: Seeds of the order of the data.
        updates: Number of batches.
        splits: Splits to translate.
        start: Position of the first seed's first batch.

    Returns:
        The corpus, and the position after the first seed's last batch.
    """
    plan = batch_plan(hparams)
    train, dev = (
        [*read_examples(data.shards(split)).as_numpy_iterator()]
        for split in ("train", "dev")
    )
    numbers = {_key(pair[INPUTS], pair[TARGETS]): n for n, pair in enumerate(train)}
    found = (
        (after, contents_of(batch, plan, numbers))
        for after, batch in training_batches(data, plan, seeds[0], start)
    )
    ends, first = zip(*itertools.islice(found, updates), strict=True)
    order = [kind for kind, _ in first]
    pairs = {seeds[0]: _pairs(first)}
    for seed in seeds[1:]:
        batches = training_batches(data, plan, seed)
        own = (contents_of(batch, plan, numbers) for _, batch in batches)
        pairs[seed] = _pairs(in_order_of_kinds(own, order))
    corpus = Corpus(
        train={side: Texts.of(pair[side] for pair in train) for side in SIDES},
        kinds=[
            (rows, *(plan.packed_lengths if plan.packed_length else (length, length)))
            for rows, length in plan.shapes
        ],
        packed=bool(plan.packed_length),
        order=np.array(order),
        pairs=pairs,
        dev={side: Texts.of(pair[side] for pair in dev) for side in SIDES},
        sources=Texts.of(source_pieces(data, hparams.max_length, splits)),
    )
    return corpus, ends[-1]


def training_batches(
    data: PreparedData, plan: BatchPlan, seed: int, start: Position = (0, 0)
) -> Iterator[tuple[Position, Batch]]:
    """Yield the batches of `t2t train` and the position after each, without end."""
    make_repeatable(seed, deterministic=False)
    first, done = start
    for epoch in itertools.count(first):
        dataset = training_epoch(
            data.shards("train"), plan, seed=seed, epoch=epoch, skip_batches=done
        )
        for number, batch in enumerate(dataset.as_numpy_iterator(), start=done + 1):
            yield (epoch, number), batch
        done = 0


def contents_of(
    batch: Batch, plan: BatchPlan, numbers: Mapping[tuple[bytes, bytes], int]
) -> Contents:
    """Find the pairs of a batch, whose numbers are given by their ids.

    Raises:
        UserError: If a pair has no number, because the data is sampled.
    """
    inputs, targets = batch[INPUTS], batch[TARGETS]
    sources = batch.get(INPUTS_SEGMENTATION, (inputs != PAD_ID).astype(int))
    segments = batch.get(TARGETS_SEGMENTATION, (targets != PAD_ID).astype(int))
    found = []
    for row in range(len(targets)):
        for segment in range(1, int(segments[row].max(initial=0)) + 1):
            source = inputs[row][sources[row] == segment]
            target = targets[row][segments[row] == segment]
            number = numbers.get(_key(source, target))
            if number is None:
                raise UserError(
                    "a batch has a pair that is not in the prepared text: data with "
                    "several copies of each pair cannot be exported."
                )
            found.append((row, number))
    return plan.shapes.index(targets.shape), found


def in_order_of_kinds(
    batches: Iterator[Contents], kinds: Iterable[int]
) -> Iterator[Contents]:
    """Yield, for each kind in turn, the next batch that has it."""
    waiting: defaultdict[int, deque[Contents]] = defaultdict(deque)
    for kind in kinds:
        while not waiting[kind]:
            batch = next(batches)
            waiting[batch[0]].append(batch)
        yield waiting[kind].popleft()


def source_pieces(
    data: PreparedData, max_length: int, splits: Iterable[str]
) -> list[tuple[int, ...]]:
    """Return the ids of every piece of the sources of some splits, each once."""
    tokenizer, _ = data.tokenizers()
    longest = longest_piece(max_length)
    found = {}
    for split in splits:
        sources, _ = data.raw_text(split)
        texts = [*map(data.problem.normalize_source, sources)]
        for ids in tokenizer.encode_batch(texts):
            found |= {tuple(piece.ids): None for piece in cut(ids, longest, 0, [])}
    return list(found)


def _key(source: np.ndarray, target: np.ndarray) -> tuple[bytes, bytes]:
    return source.astype(np.int32).tobytes(), target.astype(np.int32).tobytes()


def _pairs(batches: Iterable[Contents]) -> np.ndarray:
    """Return the pairs of batches as `Corpus.pairs` has them."""
    return np.array(
        [(n, *pair) for n, (_, pairs) in enumerate(batches) for pair in pairs]
    )
