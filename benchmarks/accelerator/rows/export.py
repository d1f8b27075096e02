"""Export rows of the papers' tables as jobs for an accelerator; needs TensorFlow.

From the root of the checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.export --text_dir multi30k \
        --data_dir data --to jobs --seeds 3 table3/base forms/weighted:5
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accelerator.rows.corpus import Corpus, Order, Texts
from benchmarks.accelerator.rows.job import Job, save_jobs
from t2t_repro import catalogue
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
from t2t_repro.reproduction.lookup import find_row
from t2t_repro.reproduction.plan import plan_of
from t2t_repro.reproduction.run_row import open_data
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.setup import make_repeatable

CORPUS_FILE = "corpus.npz"

Batch = Mapping[str, np.ndarray]
PairNumbers = Mapping[tuple[bytes, bytes], int]


@dataclasses.dataclass(frozen=True)
class Uses:
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
        uses = (uses_of(x, plan, numbers) for x in training_batches(data, plan, seed))
        if orders:
            shapes = next(iter(orders.values())).shapes.tolist()
            uses = in_order_of_shapes(uses, shapes)
        orders[seed] = _order(itertools.islice(uses, steps))
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


def uses_of(batch: Batch, plan: BatchPlan, numbers: PairNumbers) -> Uses:
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
            pairs.append(numbers[_key(source, target)])
    return Uses(plan.shapes.index(targets.shape), rows, pairs)


def in_order_of_shapes(
    batches: Iterator[Uses], shapes: Iterable[int]
) -> Iterator[Uses]:
    """Yield, for each shape in turn, the next batch that has it."""
    waiting: dict[int, deque[Uses]] = {}
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


def _order(batches: Iterable[Uses]) -> Order:
    uses = list(batches)
    return Order(
        np.array([batch.shape for batch in uses]),
        np.array([len(batch.pairs) for batch in uses]),
        np.array([*itertools.chain(*(batch.rows for batch in uses))]),
        np.array([*itertools.chain(*(batch.pairs for batch in uses))]),
    )


def row_job(
    name: str, scale: str, seeds: Iterable[int], vocab_sizes: tuple[int, int]
) -> Job:
    """Return the job of a row.

    Args:
        name: The row, as TABLE/ROW.
        scale: "small" or "long".
        seeds: The seeds.
        vocab_sizes: Sizes of the source and the target vocabulary.
    """
    recipe = plan_of(*find_row(name), scale).recipe
    hparams = catalogue.hparams(recipe.hparams_set).parse(recipe.hparams)
    return Job(
        name=f"{name.replace('/', '-')}-{scale}",
        corpus=CORPUS_FILE,
        hparams=hparams.resolved(),
        vocab_sizes=vocab_sizes,
        seeds=tuple(seeds),
        train_steps=recipe.train_steps,
        measure_every=recipe.save_checkpoints_steps or recipe.train_steps,
        average_last=max(recipe.average_last, 1),
        details={"row": name, "scale": scale},
    )


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "rows", nargs="+", metavar="TABLE/ROW[:SEEDS]", help="rows of one language pair"
    )
    parser.add_argument(
        "--text_dir", type=Path, required=True, help="folder of the raw text"
    )
    parser.add_argument(
        "--data_dir", type=Path, required=True, help="folder of the prepared data"
    )
    parser.add_argument("--to", type=Path, required=True, help="folder to write")
    parser.add_argument("--scale", choices=("small", "long"), default="long")
    parser.add_argument(
        "--seeds", type=int, default=3, help="number of seeds, from 1 on (%(default)s)"
    )
    parser.add_argument(
        "--keep_weights",
        action="store_true",
        help="bring back the averaged weights of the first seed",
    )
    return parser.parse_args(arguments)


def run(args: argparse.Namespace) -> None:
    """Export rows.

    Raises:
        UserError: If the rows do not read the same text and batches.
    """
    catalogue.load()
    seeds = {
        name: int(count or args.seeds)
        for name, _, count in (row.partition(":") for row in args.rows)
    }
    recipes = [plan_of(*find_row(name), args.scale).recipe for name in seeds]
    data = open_data(recipes[0], args.text_dir, args.data_dir)
    source, target = data.tokenizers()
    sizes = (source.vocab_size, target.vocab_size)
    jobs = [
        dataclasses.replace(
            row_job(name, args.scale, range(1, count + 1), sizes),
            keeps_weights=args.keep_weights,
        )
        for name, count in seeds.items()
    ]
    plans = {BatchPlan.for_training(job.hparams) for job in jobs}
    if len(plans) > 1 or any(r.text != recipes[0].text for r in recipes):
        raise UserError("the rows have different text or batches: export them apart.")
    corpus = export_corpus(
        data,
        jobs[0].hparams,
        range(1, max(seeds.values()) + 1),
        max(job.train_steps for job in jobs),
    )
    args.to.mkdir(parents=True, exist_ok=True)
    corpus.save(args.to / CORPUS_FILE)
    save_jobs(jobs, args.to)
    print(f"{args.to}: {len(jobs)} jobs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Export rows; return 0, or 1 after an error of the user."""
    try:
        run(parse_flags(arguments))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
