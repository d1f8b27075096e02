"""Train jobs, several of them at the same time on one accelerator; no TensorFlow.

From the root of the checkout:

    KERAS_BACKEND=jax PYTHONPATH=. python -m benchmarks.accelerator.rows.train \
        --jobs jobs --to outcomes --processes 4
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import keras
import numpy as np

import t2t_repro
from benchmarks.accelerator.jax_step import PRECISIONS, require_jax, with_precision
from benchmarks.accelerator.program import run_program
from benchmarks.accelerator.rows.corpus import SIDES, Arrays, Corpus
from benchmarks.accelerator.rows.job import (
    AVERAGED,
    CORPUS_FILE,
    STATE_FILE,
    Job,
    Outcome,
    has_outcome,
    load_jobs,
    state_variables,
)
from benchmarks.accelerator.rows.search import translate
from benchmarks.accelerator.rows.seeds import (
    SeedTraining,
    Weights,
    device_batches,
    train,
)
from t2t_repro.errors import UserError


def run_job(job: Job, folder: Path, precision: str, processes: int) -> Outcome:
    """Train a job of a folder, and translate with its last and averaged weights.

    Measurements and translations multiply float32 matrices in the highest precision.
    """
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"{job.name} {time.perf_counter() - started:.0f} s: {text}", flush=True)

    corpus, first_state = Corpus.load(folder / CORPUS_FILE), {}
    if job.resumes:
        with np.load(folder / STATE_FILE) as file:
            first_state = dict(file)
    hparams = with_precision(job.hparams, precision)
    seeds = SeedTraining(job, hparams, first_state)
    kinds = corpus.order[: job.updates].tolist()
    say(f"compiling {len(set(kinds))} shapes")
    with jax.default_matmul_precision(PRECISIONS[precision]):
        step = seeds.compile(device_batches(corpus, job))
    with jax.default_matmul_precision("highest"):
        dev_nll = seeds.dev_nll(dev_batch(corpus, hparams.max_length))
        arrays, systems, seconds = train(job, seeds, step, dev_nll, kinds, say)
        say(f"trained in {seconds:.1f} s")
        ids = translate(seeds.model, systems, corpus.sources, job.decode_hparams)
        arrays |= {f"ids/{name}": found for name, found in ids.items()}
        arrays |= {f"nll/{name}": dev_nll(x) for name, x in systems.items()}
    say("translated")
    return Outcome(
        digest=job.digest(folder),
        seconds=seconds,
        processes=processes,
        device=jax.local_devices()[0].device_kind,
        precision=precision,
        versions={x.__name__: x.__version__ for x in (t2t_repro, jax, keras)},
        parameters=seeds.model.count_params(),
        arrays=arrays | kept_arrays(job, seeds, systems[AVERAGED]),
    )


def kept_arrays(job: Job, seeds: SeedTraining, averaged: Weights) -> Arrays:
    """Return the weights and the state that a job keeps, see `Outcome.arrays`."""
    names, kept = [*state_variables(seeds.model, seeds.optimizer)], {}
    if job.keeps_weights:
        weights = (name.replace("model", "averaged", 1) for name in names)
        kept |= zip(weights, averaged, strict=False)
    if job.resumes:
        state = (f"state/{name}" for name in names)
        kept |= zip(state, jax.tree.leaves(seeds.state), strict=True)
    return {name: np.asarray(values) for name, values in kept.items()}


def dev_batch(corpus: Corpus, max_length: int) -> dict[str, jax.Array]:
    """Return the dev pairs that are not longer than `max_length`, padded."""
    longest = np.max([corpus.dev[side].lengths for side in SIDES], axis=0)
    numbers = np.flatnonzero(longest <= max_length)
    padded = (corpus.dev[x].padded(numbers, longest[numbers].max()) for x in SIDES)
    return {x: jax.numpy.asarray(ids) for x, ids in zip(SIDES, padded, strict=True)}


def run_all(jobs: Sequence[Job], args: argparse.Namespace) -> None:
    """Run every job without an outcome, each in its own process.

    Raises:
        UserError: If a job failed or did not begin in time.
    """
    deadline = time.monotonic() + args.seconds
    command = [sys.executable, "-m", "benchmarks.accelerator.rows.train"]
    for name in ("jobs", "to", "precision", "processes"):
        command += [f"--{name}", str(getattr(args, name))]

    def failed(name: str) -> bool:
        if time.monotonic() >= deadline:
            return True
        return subprocess.run([*command, "--only", name], check=False).returncode != 0

    names = [x.name for x in jobs if not has_outcome(x, args.jobs, args.to)]
    with ThreadPoolExecutor(args.processes) as threads:
        missing = [*itertools.compress(names, threads.map(failed, names))]
    if missing:
        raise UserError(
            f"no outcome of {', '.join(missing)}: the same command trains them."
        )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the program."""
    add = parser.add_argument
    add("--jobs", type=Path, required=True, help="folder of jobs")
    add("--to", type=Path, required=True, help="folder of outcomes")
    add("--only", help="name of one job, trained in this process")
    add("--processes", type=int, default=4, help="jobs at the same time (%(default)s)")
    add("--precision", choices=PRECISIONS, default="float32", help="(%(default)s)")
    add("--seconds", type=float, default=480.0, help="begin no job later (%(default)s)")


def run(args: argparse.Namespace) -> None:
    """Train all jobs, or one of them in this process.

    Raises:
        UserError: If a job has no outcome afterwards, or there is no such job.
    """
    require_jax()
    args.to.mkdir(parents=True, exist_ok=True)
    jobs = {job.name: job for job in load_jobs(args.jobs)}
    if args.only is None:
        run_all([*jobs.values()], args)
    elif args.only in jobs:
        outcome = run_job(jobs[args.only], args.jobs, args.precision, args.processes)
        outcome.save(args.to / f"{args.only}.npz")
    else:
        raise UserError(f"received only={args.only}, expected one of {[*jobs]}.")


if __name__ == "__main__":
    sys.exit(run_program(__doc__, add_flags, run))
