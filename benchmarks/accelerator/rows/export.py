"""Export rows of the papers' tables, or runs, for an accelerator; needs TensorFlow.

A run is a folder that `t2t train --train_steps 1` has made: its settings are trained
from the start, or with `--resume` from its latest checkpoint on. From the root of the
checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.export --text_dir multi30k \
        --data_dir data --to jobs --seeds 3 table3/base forms/weighted:5
    PYTHONPATH=. python -m benchmarks.accelerator.rows.export --to jobs \
        --train_steps 20000 run

Parsers bring back their weights. The others bring back translations, and their weights
with `--keep_weights`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accelerator.program import run_program
from benchmarks.accelerator.rows.batches import batch_plan, export_corpus
from benchmarks.accelerator.rows.corpus import LARGEST_VOCABULARY, save_arrays
from benchmarks.accelerator.rows.job import STATE_FILE, Job, save_jobs
from benchmarks.accelerator.rows.runs import read_state
from t2t_repro import catalogue
from t2t_repro.cli.flags import number_in_range
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.row_plan import plan_of
from t2t_repro.features.reproduction.run_row import open_data, train_settings
from t2t_repro.runs.run import RUN_FILE, Run, describe_run
from t2t_repro.runs.training_config import resolved_hparams
from t2t_repro.settings.decode_hparams import DecodeHParams

# The settings that the search on JAX follows.
FOLLOWED = ("beam_size", "alpha", "extra_length")
AT_LEAST_ONE = number_in_range(1, int)


def job_of(
    name: str,
    run: Run,
    data: PreparedData,
    seeds: Sequence[int],
    first_step: int = 0,
    **others: object,
) -> Job:
    """Return the job that trains a run with some seeds up to its `train_steps`.

    Args:
        name: Name of the job.
        run: The run.
        data: Prepared data of the run.
        seeds: The seeds.
        first_step: See `Job.first_step`.
        **others: Further attributes of the job.

    Raises:
        UserError: If JAX would train another model, or search in another way.
    """
    source, target = data.tokenizers()
    sizes, settings = (source.vocab_size, target.vocab_size), run.train_settings("")
    updates = settings.train_steps - first_step
    every = settings.steps_between_checkpoints or updates
    search, standard = DecodeHParams().parse(settings.decode_hparams), DecodeHParams()
    ignored = search.replace(**{name: getattr(standard, name) for name in FOLLOWED})
    for is_wrong, expected in (
        (updates < 1, f"train_steps above {first_step}"),
        (run.num_replicas != 1, "a run of one replica"),
        (max(sizes) > LARGEST_VOCABULARY, f"at most {LARGEST_VOCABULARY:,} subwords"),
        (ignored != standard, f"decode_hparams of only {', '.join(FOLLOWED)}"),
    ):
        if is_wrong:
            raise UserError(f"{name}: expected {expected}.")
    measured = updates if updates % every else every
    return Job(
        name=name,
        run=vars(run) | {"hparams": run.hparams.to_dict()},
        vocab_sizes=sizes,
        has_one_vocabulary=source is target,
        seeds=[*seeds],
        updates=updates,
        measure_every=measured,
        average_last=min(max(settings.average_last, 1), updates // measured),
        counters=run.counters(source, target),
        first_step=first_step,
        **others,
    )


def row_jobs(args: argparse.Namespace) -> tuple[list[Job], PreparedData]:
    """Return the jobs of the rows that the flags name, and their data.

    Raises:
        UserError: If a folder is missing, or a row's results are of several systems.
    """
    if args.text_dir is None or args.data_dir is None:
        raise UserError("--text_dir and --data_dir are missing: rows need them.")
    plans = {name: plan_of(*find_row(name), args.scale) for name, _ in args.what}
    recipes = [plan.recipe for plan in plans.values()]
    for name, plan in plans.items():
        if len(plan.rows) > 1 or plan.recipe.text != recipes[0].text:
            raise UserError(
                f"received {name}, expected a row of one system, and the text of the "
                "other rows: export it apart."
            )
    data = open_data(recipes[0], args.text_dir, args.data_dir)
    jobs = []
    for name, count in args.what:
        settings = train_settings(plans[name], "")
        run = describe_run(
            settings, resolved_hparams(settings), data.problem.name, data
        )
        seeds = range(args.first_seed, args.first_seed + (count or args.seeds))
        title = f"{name.replace('/', '-')}-{args.scale}"
        jobs.append(job_of(title, run, data, seeds, row=name, scale=args.scale))
    return jobs, data


def run_jobs(args: argparse.Namespace) -> tuple[list[Job], PreparedData]:
    """Return the jobs of the runs that the flags name, and their data.

    Raises:
        UserError: If their data differs, or is not there.
    """
    jobs = []
    for name, count in args.what:
        folder, others = Path(name), {}
        run = Run.load_existing(folder)
        run.load_catalogue()
        data = PreparedData.load(run.data_dir, catalogue.problem(run.problem))
        if {run.data_digest, *(x.run["data_digest"] for x in jobs)} != {data.digest}:
            raise UserError(f"{folder} has other data: export it apart.")
        seeds = range(args.first_seed, args.first_seed + (count or args.seeds))
        if args.train_steps is not None:
            training = run.training | {"train_steps": args.train_steps}
            run = dataclasses.replace(run, training=training)
        if args.resume:
            state, step, position = read_state(run, folder)
            args.to.mkdir(parents=True, exist_ok=True)
            save_arrays(args.to / STATE_FILE, state)
            seeds = [run.random_seed]
            others = {"first_step": step, "position": position, "resumes": True}
        jobs.append(job_of(folder.name, run, data, seeds, **others))
    return jobs, data


def run(args: argparse.Namespace) -> None:
    """Export rows or runs.

    Raises:
        UserError: If they do not read the same batches, or cannot be resumed.
    """
    catalogue.load()
    are_runs = (Path(args.what[0][0]) / RUN_FILE).is_file()
    if args.resume and (len(args.what) > 1 or not are_runs):
        raise UserError("--resume needs the folder of one run.")
    jobs, data = run_jobs(args) if are_runs else row_jobs(args)
    if len({batch_plan(job.hparams) for job in jobs}) > 1:
        raise UserError("the batches differ: export them apart.")
    # A parser's search, which may prefer valid trees, is not made on JAX.
    is_parser = data.problem.target_grammar(data.tokenizers()[1]) is not None
    splits = () if is_parser else ("dev",) if are_runs else ("dev", "test")
    corpus, position = export_corpus(
        data,
        jobs[0].hparams,
        max((job.seeds for job in jobs), key=len),
        max(job.updates for job in jobs),
        splits=splits,
        start=jobs[0].position,  # that of the end replaces it below
    )
    changes = {"keeps_weights": is_parser or args.keep_weights, "position": position}
    jobs = [dataclasses.replace(job, **changes) for job in jobs]
    save_jobs(args.to, jobs, corpus)
    print(f"{args.to}: {len(jobs)} jobs")


def name_and_seeds(text: str) -> tuple[str, int]:
    """Read NAME or NAME:SEEDS; without SEEDS, their number is 0."""
    name, colon, count = text.partition(":")
    return name, AT_LEAST_ONE(count) if colon else 0


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the program."""
    add = parser.add_argument
    add("what", nargs="+", type=name_and_seeds, metavar="TABLE/ROW[:SEEDS]|RUN[:SEEDS]")
    add("--text_dir", type=Path, help="folder of the rows' raw text")
    add("--data_dir", type=Path, help="folder of the rows' prepared data")
    add("--to", type=Path, required=True, help="folder to write")
    add("--scale", choices=("small", "long"), default="long", help="of the rows")
    add("--seeds", type=AT_LEAST_ONE, default=3, help="number (%(default)s)")
    add("--first_seed", type=AT_LEAST_ONE, default=1, help="(%(default)s)")
    add("--train_steps", type=AT_LEAST_ONE, help="updates at the end of the runs")
    add("--keep_weights", action="store_true", help="bring back averaged weights")
    add("--resume", action="store_true", help="continue one run, for `t2t train` too")


if __name__ == "__main__":
    sys.exit(run_program(__doc__, add_flags, run))
