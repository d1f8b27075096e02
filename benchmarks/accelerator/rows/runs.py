"""Write the weights that a job kept as runs that `t2t decode` reads; needs TensorFlow.

Each seed becomes a run; several seeds become an ensemble. From the root of the
checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.runs --jobs jobs \
        --outcomes outcomes --only dropout2 --data_dir data --to ensemble
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.job import Job
from benchmarks.accelerator.rows.outcome import Outcome, load_outcomes
from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_folder
from t2t_repro.runs.describing import describe
from t2t_repro.runs.ensemble_folder import EnsembleFolder
from t2t_repro.runs.run import Run, save_tokenizers
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.averaging import write_averaged


def described_run(job: Job, data: PreparedData, seed: int) -> Run:
    """Return the run that trains a job with one seed, without its tokenizers."""
    settings = TrainSettings(
        output_dir="",
        hparams_set=job.details["hparams_set"],
        random_seed=seed,
        train_steps=job.train_steps,
        average_last=job.average_last,
        save_checkpoints_steps=job.measure_every,
    )
    return describe(settings, job.hparams, data, 1)


def with_counters(job: Job, data: PreparedData) -> Job:
    """Return a job with the counters that its hparams ask for.

    Args:
        job: The job.
        data: Prepared data of its corpus.
    """
    described = described_run(job, data, job.seeds[0])
    return dataclasses.replace(job, counters=described.counters(*data.tokenizers()))


def write_system(job: Job, outcome: Outcome, data: PreparedData, folder: Path) -> None:
    """Write the averaged weights of a job as a run, or as an ensemble of its seeds.

    Args:
        job: The job.
        outcome: Its outcome, with weights.
        data: Prepared data that the job was exported from.
        folder: Folder to write, which must not exist.

    Raises:
        UserError: If the outcome has no weights, or the folder exists.
    """
    if folder.exists():
        raise UserError(f"{folder} exists: give the name of a new folder.")
    if not job.keeps_weights:
        raise UserError(
            f"{job.name} kept no weights: export it again with `--keep_weights`, and "
            "train it."
        )
    with atomic_folder(folder) as incomplete:
        if len(job.seeds) > 1:
            EnsembleFolder(len(job.seeds)).save(incomplete)
        for number, member in enumerate(system_folders(job, incomplete)):
            member.mkdir(exist_ok=True)
            _write_run(job, outcome, data, number, member)


def system_folders(job: Job, folder: Path) -> list[Path]:
    """Return the folder of each seed's run in the folder of `write_system`."""
    seeds = len(job.seeds)
    return EnsembleFolder(seeds).folders(folder) if seeds > 1 else [folder]


def _write_run(
    job: Job, outcome: Outcome, data: PreparedData, number: int, folder: Path
) -> None:
    """Write the run of a seed, counted from 0, with its averaged checkpoint."""
    tokenizers = data.tokenizers()
    described = described_run(job, data, job.seeds[number])
    run = dataclasses.replace(
        described, tokenizers=save_tokenizers(folder, *tokenizers)
    )
    run.save(folder)
    model = run.build_model(*tokenizers)
    for variable in model.trainable_variables:
        variable.assign(outcome.arrays[f"averaged/{variable.path}"][number])
    write_averaged(model, str(folder), job.train_steps)


def run(args: argparse.Namespace) -> None:
    """Write the system of a job.

    Raises:
        UserError: If the job has no outcome.
    """
    catalogue.load()
    for job, outcome in load_outcomes(args.jobs, args.outcomes):
        if job.name == args.only:
            problem = catalogue.problem(job.details["problem"])
            data = PreparedData.load(args.data_dir, problem)
            write_system(job, outcome, data, args.to)
            flags = f"--output_dir {args.to} --checkpoint_path averaged"
            print(f"{args.to}: `t2t decode {flags}` reads it")
            return
    raise UserError(
        f"received only={args.only}, expected a job with an outcome in {args.outcomes}."
    )


def main() -> int:
    """Write a system; return 0, or 1 after an error of the user."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, meaning in {
        "jobs": "folder of the jobs",
        "outcomes": "folder of the outcomes",
        "data_dir": "folder of the prepared data",
        "to": "new folder",
    }.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=meaning)
    parser.add_argument("--only", required=True, help="name of the job")
    args = parser.parse_args()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
