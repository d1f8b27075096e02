"""Score the parsers that jobs trained, and write result files; needs TensorFlow.

From the root of the checkout, in new folders for the runs:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.parsers --jobs jobs \
        --outcomes outcomes --text_dir trees --data_dir data --to parsers \
        --result_dir results
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.job import Job
from benchmarks.accelerator.rows.outcome import Outcome, load_outcomes
from benchmarks.accelerator.rows.results import (
    hardware,
    job_commands,
    row_data,
    row_plan,
)
from benchmarks.accelerator.rows.runs import system_folders, write_system
from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.files import atomic_write
from t2t_repro.reproduction.results import Result
from t2t_repro.reproduction.run_row import named_scores
from t2t_repro.runs import System


def parser_result(
    job: Job,
    outcome: Outcome,
    number: int,
    folder: Path,
    data: PreparedData,
    text_dir: Path,
) -> Result:
    """Return the result of a seed, counted from 0, and write the trees of its run.

    Args:
        job: The job.
        outcome: Its outcome.
        number: Number of the seed.
        folder: Folder of the seed's run.
        data: Prepared data of the job.
        text_dir: Folder of the trees.
    """
    plan = row_plan(job, job.seeds[number])
    scores = _scores(folder, plan.recipe.splits, data)
    (row,) = plan.rows
    return Result(
        system=str(row.system),
        scale=plan.scale,
        seed=plan.seed,
        scores=scores,
        signature="",
        steps=int(outcome.steps[-1]),
        seconds=round(outcome.seconds, 1),
        parameters=outcome.parameters,
        commands=job_commands(job, outcome, "parsers"),
        data=plan.recipe.text_digests(text_dir),
        hardware=hardware(job, outcome),
        versions=json.loads(outcome.versions),
    )


def _scores(
    folder: Path, splits: tuple[str, ...], data: PreparedData
) -> dict[str, float]:
    """Return the scores of a run's average, and write its trees to the folder."""
    parser = System.load(folder, "averaged")
    scores: dict[str, float] = {}
    for split in splits:
        sentences, references = data.raw_text(split)
        evaluation = parser.evaluate(sentences, references)
        lines = "".join(f"{line}\n" for line in evaluation.hypotheses)
        atomic_write(folder / f"{split}.trees", lines)
        scores |= named_scores(evaluation, references, split)
    return scores


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, meaning in {
        "jobs": "folder of the jobs",
        "outcomes": "folder of the outcomes",
        "text_dir": "folder of the trees",
        "data_dir": "folder of the prepared data",
        "to": "folder for a new folder of runs per job",
        "result_dir": "folder for the result files",
    }.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=meaning)
    return parser.parse_args(arguments)


def run(args: argparse.Namespace) -> None:
    """Write the runs and the result files of all jobs with an outcome."""
    catalogue.load()
    for job, outcome in load_outcomes(args.jobs, args.outcomes):
        data = row_data(job, args.text_dir, args.data_dir)
        folder = args.to / job.name
        write_system(job, outcome, data, folder)
        for number, member in enumerate(system_folders(job, folder)):
            result = parser_result(job, outcome, number, member, data, args.text_dir)
            print(result.save(args.result_dir))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return 0, or 1 after an error of the user."""
    args = parse_flags(arguments)
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
