"""Export rows of the papers' tables as jobs for an accelerator; needs TensorFlow.

From the root of the checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.export --text_dir multi30k \
        --data_dir data --to jobs --seeds 3 table3/base forms/weighted:5

The jobs of parsers bring back their weights, and those of the others translations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.batches import export_corpus
from benchmarks.accelerator.rows.job import CORPUS_FILE, Job, save_jobs
from benchmarks.accelerator.rows.runs import with_counters
from t2t_repro import catalogue
from t2t_repro.cli.flags import number_in_range
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.lookup import find_row
from t2t_repro.features.reproduction.plan import plan_of
from t2t_repro.features.reproduction.recipes import Recipe
from t2t_repro.features.reproduction.run_row import open_data

PARSING = "parsing"  # a `Table.task`
AT_LEAST_ONE = number_in_range(1, int)


def row_job(
    name: str, scale: str, seeds: Iterable[int], vocab_sizes: tuple[int, int]
) -> Job:
    """Return the job of a row, without counters.

    Args:
        name: The row, as TABLE/ROW.
        scale: "small" or "long".
        seeds: The seeds.
        vocab_sizes: Sizes of the source and the target vocabulary.
    """
    table, row = find_row(name)
    recipe = plan_of(table, row, scale).recipe
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
        details={
            "row": name,
            "scale": scale,
            "problem": recipe.problem,
            "hparams_set": recipe.hparams_set,
        },
        # A parser's search, which may prefer valid trees, is not made on JAX.
        keeps_weights=table.task == PARSING,
    )


def checked_recipe(name: str, scale: str) -> Recipe:
    """Return the recipe of a row.

    Raises:
        UserError: If its results are not those of one system.
    """
    plan = plan_of(*find_row(name), scale)
    if len(plan.rows) > 1:
        raise UserError(f"received {name}, expected the row of one system.")
    return plan.recipe


def row_and_seeds(text: str) -> tuple[str, int]:
    """Read TABLE/ROW or TABLE/ROW:SEEDS; return 0 seeds for the former."""
    name, colon, count = text.partition(":")
    return name, AT_LEAST_ONE(count) if colon else 0


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "rows",
        nargs="+",
        type=row_and_seeds,
        metavar="TABLE/ROW[:SEEDS]",
        help="rows of one language pair",
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
        "--seeds",
        type=AT_LEAST_ONE,
        default=3,
        help="number of seeds (default: %(default)s)",
    )
    parser.add_argument(
        "--first_seed",
        type=AT_LEAST_ONE,
        default=1,
        help="smallest seed (default: %(default)s)",
    )
    return parser.parse_args(arguments)


def run(args: argparse.Namespace) -> None:
    """Export rows.

    Raises:
        UserError: If the rows do not read the same text and batches.
    """
    catalogue.load()
    seeds = {name: count or args.seeds for name, count in args.rows}
    recipes = [checked_recipe(name, args.scale) for name in seeds]
    data = open_data(recipes[0], args.text_dir, args.data_dir)
    source, target = data.tokenizers()
    sizes = (source.vocab_size, target.vocab_size)
    first = args.first_seed
    jobs = [
        with_counters(row_job(name, args.scale, range(first, first + n), sizes), data)
        for name, n in seeds.items()
    ]
    plans = {BatchPlan.for_training(job.hparams) for job in jobs}
    if len(plans) > 1 or any(r.text != recipes[0].text for r in recipes):
        raise UserError("the rows have different text or batches: export them apart.")
    corpus = export_corpus(
        data,
        jobs[0].hparams,
        range(first, first + max(seeds.values())),
        max(job.train_steps for job in jobs),
        splits=() if jobs[0].keeps_weights else ("dev", "test"),
    )
    args.to.mkdir(parents=True, exist_ok=True)
    corpus.save(args.to / CORPUS_FILE)
    save_jobs(jobs, args.to)
    print(f"{args.to}: {len(jobs)} jobs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Export rows; return 0, or 1 after an error of the user."""
    args = parse_flags(arguments)
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
