"""Score the parsers that jobs trained, and write result files; needs TensorFlow.

From the root of the checkout, in new folders for the runs:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.parsers --jobs jobs \
        --outcomes outcomes --text_dir trees --data_dir data --to parsers \
        --result_dir results
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.outcome import load_outcomes
from benchmarks.accelerator.rows.results import row_data, row_plan, row_result
from benchmarks.accelerator.rows.runs import system_folders, write_system
from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.features.reproduction.run_row import named_scores
from t2t_repro.files import atomic_write
from t2t_repro.runs import System


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
            plan = row_plan(job, job.seeds[number])
            scores = _scores(member, plan.recipe.splits, data)
            result = row_result(
                job, outcome, plan, scores, "", args.text_dir, "parsers"
            )
            print(result.save(args.result_dir))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return 0, or 1 after an error of the user."""
    args = parse_flags(arguments)
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
