"""Write what a job kept as runs that `t2t decode` reads; needs TensorFlow.

Each seed becomes a run; several seeds become an ensemble. From the root of the
checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.runs --jobs jobs \
        --outcomes outcomes --only dropout2 --data_dir data --to ensemble
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import keras
import tensorflow as tf

from benchmarks.accelerator.program import run_program
from benchmarks.accelerator.rows.corpus import Arrays
from benchmarks.accelerator.rows.job import Job, Outcome, load_outcomes, state_variables
from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.ensembles.members import EnsembleFolder, member_folders
from t2t_repro.files import atomic_folder
from t2t_repro.runs.run import Run, save_tokenizers
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.checkpoint_paths import find_checkpoint, step_of
from t2t_repro.training.checkpoints import (
    Variables,
    model_variables,
    restore,
    variables_by_path,
    write_averaged,
    write_checkpoint,
)
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.training_state import random_states


def resumable(
    run: Run, model: keras.Model, position: Sequence[int]
) -> tuple[dict[str, keras.Variable], Variables]:
    """Return what a training run changes, by name and as its checkpoints have it."""
    optimizer = make_optimizer(run.hparams, run.training["train_steps"])
    optimizer.build(model.trainable_variables)
    names = zip(("epoch", "batches"), position, strict=True)
    return state_variables(model, optimizer), {
        **model_variables(model),
        "optimizer": variables_by_path(optimizer.variables),
        "random": random_states(model),
        "data": {name: tf.Variable(x, dtype=tf.int64, name=name) for name, x in names},
    }


def read_state(run: Run, folder: Path) -> tuple[Arrays, int, Sequence[int]]:
    """Return the state of a run's latest checkpoint, its step and `Job.position`."""
    model = run.build_model(*run.load_tokenizers(folder))
    state, checkpoint = resumable(run, model, (0, 0))
    path = find_checkpoint(folder, "latest")
    restore(checkpoint, path)
    arrays = {name: variable.numpy() for name, variable in state.items()}
    return arrays, step_of(path), [int(x) for x in checkpoint["data"].values()]


def write_system(job: Job, outcome: Outcome, data: PreparedData, folder: Path) -> None:
    """Write the weights of a job as a run, or as an ensemble of its seeds.

    Raises:
        UserError: If the outcome has no weights, or the folder exists.
    """
    if folder.exists():
        raise UserError(f"{folder} exists: give the name of a new folder.")
    if not (job.keeps_weights or job.resumes):
        raise UserError(
            f"{job.name} kept no weights: export it again with `--keep_weights`, and "
            "train it."
        )
    with atomic_folder(folder) as incomplete:
        if len(job.seeds) > 1:
            EnsembleFolder(len(job.seeds)).save(incomplete)
        for number, member in enumerate(system_folders(incomplete)):
            member.mkdir(exist_ok=True)
            _write_run(job, outcome, data, number, member)


def system_folders(folder: Path) -> list[Path]:
    """Return the folder of each seed's run in the folder of `write_system`."""
    return member_folders(folder) or [folder]


def _write_run(
    job: Job, outcome: Outcome, data: PreparedData, number: int, folder: Path
) -> None:
    """Write the run of a seed, counted from 0, with its checkpoints."""
    tokenizers = data.tokenizers()
    of_seed = {
        "hparams": HParams.from_dict(job.run["hparams"]),
        "random_seed": job.seeds[number],
        "data_dir": str(data.folder.resolve()),
        "tokenizers": save_tokenizers(folder, *tokenizers),
    }
    run = Run(**job.run | of_seed)
    run.save(folder)
    model = run.build_model(*tokenizers)
    if job.resumes:
        state, checkpoint = resumable(run, model, job.position)
        for name, variable in state.items():
            variable.assign(outcome.arrays[f"state/{name}"][number])
        write_checkpoint(checkpoint, folder, job.last_step)
    if job.keeps_weights:
        for variable in model.trainable_variables:
            variable.assign(outcome.arrays[f"averaged/{variable.path}"][number])
        write_averaged(model, str(folder), job.last_step)


def run(args: argparse.Namespace) -> None:
    """Write the system of a job.

    Raises:
        UserError: If the job has no outcome.
    """
    catalogue.load()
    found = {job.name: (job, x) for job, x in load_outcomes(args.jobs, args.outcomes)}
    if args.only not in found:
        raise UserError(f"received only={args.only}, expected one of {[*found]}.")
    job, outcome = found[args.only]
    data = PreparedData.load(args.data_dir, catalogue.problem(job.run["problem"]))
    write_system(job, outcome, data, args.to)
    system = "averaged" if job.keeps_weights else "latest"
    print(f"`t2t decode --output_dir {args.to} --checkpoint_path {system}` reads it")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the program."""
    for name in ("jobs", "outcomes", "data_dir"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="their folder")
    parser.add_argument("--to", type=Path, required=True, help="new folder")
    parser.add_argument("--only", required=True, help="name of the job")


if __name__ == "__main__":
    sys.exit(run_program(__doc__, add_flags, run))
