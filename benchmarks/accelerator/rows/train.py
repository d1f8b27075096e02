"""Train jobs, several of them at the same time on one accelerator; no TensorFlow.

From the root of the checkout:

    KERAS_BACKEND=jax PYTHONPATH=. python -m benchmarks.accelerator.rows.train \
        --jobs jobs --to outcomes --processes 4
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import keras
import numpy as np

import t2t_repro
from benchmarks.accelerator.jax_step import require_jax
from benchmarks.accelerator.measure import PRECISIONS
from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.job import Job, load_jobs
from benchmarks.accelerator.rows.outcome import Outcome, has_outcome, outcome_path
from benchmarks.accelerator.rows.search import translate
from benchmarks.accelerator.rows.seeds import (
    Curves,
    SeedTraining,
    Weights,
    device_batches,
    train,
)
from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.errors import UserError

POLL_SECONDS = 0.5
FLOAT32 = ("float32", "tensorfloat32")  # names of `PRECISIONS`


def run_job(
    job: Job, corpus: Corpus, digest: str, precision: str, processes: int
) -> Outcome:
    """Train a job, and translate with its last and averaged weights.

    Args:
        job: The job.
        corpus: Its corpus.
        digest: `Job.digest` of the job.
        precision: Precision of the training run, one of `FLOAT32`; measurements and
            translations have the highest.
        processes: Largest number of jobs that train at the same time.
    """
    say = _printer(job.name)
    seeds = SeedTraining.begin(
        job.hparams, job.vocab_sizes, job.seeds, job.train_steps, job.counters
    )
    shapes = corpus.orders[job.seeds[0]].shapes[: job.train_steps]
    counts = np.bincount(shapes, minlength=len(corpus.shapes))
    say(f"compiling {np.count_nonzero(counts)} shapes")
    with jax.default_matmul_precision(PRECISIONS[precision][1]):
        step = seeds.compile(device_batches(corpus, job.seeds, counts))
    with jax.default_matmul_precision("highest"):
        dev_nll = seeds.dev_nll(dev_batch(corpus, job.hparams.max_length))
        trained = train(
            seeds,
            step,
            dev_nll,
            shapes.tolist(),
            measure_every=job.measure_every,
            average_last=job.average_last,
            report=_progress(job, say),
        )
        say(f"trained in {trained.seconds:.1f} s")
        systems = [seeds.state.trainable, trained.averaged]
        ids = translate(
            seeds.model,
            [of_seed(weights, n) for weights in systems for n in range(len(job.seeds))],
            corpus.sources,
            job.decode_hparams,
        )
        averaged_nll = dev_nll(trained.averaged)
    say("translated")
    return Outcome(
        digest=digest,
        steps=np.array(trained.curves.steps),
        loss=np.array(trained.curves.loss),
        nll=np.array(trained.curves.nll),
        averaged_nll=averaged_nll,
        ids=ids.reshape(len(systems), len(job.seeds), *ids.shape[1:]),
        seconds=trained.seconds,
        processes=processes,
        device=jax.local_devices()[0].device_kind,
        precision=precision,
        versions=json.dumps(software_versions()),
        parameters=seeds.model.count_params(),
        arrays=named_arrays(
            seeds, trained.curves, trained.averaged if job.keeps_weights else None
        ),
    )


def software_versions() -> dict[str, str]:
    """Return the versions of this package and of the libraries it computes with."""
    modules = {"t2t_repro": t2t_repro, "jax": jax, "keras": keras}
    return {name: module.__version__ for name, module in modules.items()}


def _printer(name: str) -> Callable[[str], None]:
    """Return a function that prints a line with the time since now."""
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"{name} {time.perf_counter() - started:.0f} s: {text}", flush=True)

    return say


def _progress(
    job: Job, say: Callable[[str], None]
) -> Callable[[int, Curves, float], None]:
    """Return a function that prints the first and every tenth measurement."""

    def report(number: int, curves: Curves, seconds: float) -> None:
        if number == job.measure_every or number % (10 * job.measure_every) == 0:
            speed = f"{1e3 * seconds / number:.2f} ms per step"
            losses, nlls = (np.round(x[-1], 3) for x in (curves.loss, curves.nll))
            say(f"step {number}, {speed}, loss {losses}, dev nll {nlls}")

    return report


def of_seed(weights: Weights, number: int) -> Weights:
    """Return the weights of one seed, counted from 0."""
    return [values[number] for values in weights]


def named_arrays(
    seeds: SeedTraining, curves: Curves, kept: Weights | None
) -> dict[str, np.ndarray]:
    """Return the arrays of an outcome, see `Outcome.arrays`."""
    arrays = {
        f"branches/{path}": np.array([point[path] for point in curves.branches])
        for path in curves.branches[-1]
    }
    if kept is not None:
        variables = seeds.model.trainable_variables
        for variable, values in zip(variables, kept, strict=True):
            arrays[f"averaged/{variable.path}"] = np.asarray(values)
    return arrays


def dev_batch(corpus: Corpus, max_length: int) -> dict[str, jax.Array]:
    """Return the dev pairs that are not longer than `max_length`, padded."""
    lengths = np.stack([corpus.dev[side].lengths for side in (INPUTS, TARGETS)])
    longest = lengths.max(axis=0)
    numbers = np.flatnonzero(longest <= max_length)
    length = int(longest[numbers].max())
    return {
        side: jax.numpy.asarray(corpus.dev[side].padded(numbers, length))
        for side in (INPUTS, TARGETS)
    }


def run_all(args: argparse.Namespace) -> None:
    """Run every job without an outcome, each in its own process.

    Raises:
        UserError: If a job failed or did not begin in time.
    """
    jobs = load_jobs(args.jobs)
    waiting = [x.name for x in jobs if not has_outcome(x, args.jobs, args.to)]
    running: list[subprocess.Popen[bytes]] = []
    failures = 0
    deadline = time.monotonic() + args.seconds
    while running or (waiting and time.monotonic() < deadline):
        ended = [process for process in running if process.poll() is not None]
        failures += sum(process.returncode != 0 for process in ended)
        running = [process for process in running if process not in ended]
        while waiting and len(running) < args.processes and time.monotonic() < deadline:
            running.append(_begin(waiting.pop(0), args))
        time.sleep(POLL_SECONDS)
    print(f"{failures} failures, {len(waiting)} jobs not begun", flush=True)
    if failures or waiting:
        raise UserError("some jobs have no outcome: the same command trains them.")


def _begin(name: str, args: argparse.Namespace) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.accelerator.rows.train"]
    command += ["--jobs", str(args.jobs), "--to", str(args.to), "--only", name]
    command += ["--precision", args.precision, "--processes", str(args.processes)]
    return subprocess.Popen(command)


def run_one(args: argparse.Namespace) -> None:
    """Run one job in this process.

    Raises:
        UserError: If there is no such job.
    """
    jobs = {job.name: job for job in load_jobs(args.jobs)}
    if args.only not in jobs:
        raise UserError(f"received only={args.only}, expected one of {[*jobs]}.")
    job = jobs[args.only]
    corpus, digest = Corpus.load(args.jobs / job.corpus), job.digest(args.jobs)
    outcome = run_job(job, corpus, digest, args.precision, args.processes)
    outcome.save(outcome_path(args.to, job))


def parse_flags() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=Path, required=True, help="folder of jobs")
    parser.add_argument("--to", type=Path, required=True, help="folder of outcomes")
    parser.add_argument("--only", help="name of one job, trained in this process")
    parser.add_argument(
        "--processes", type=int, default=4, help="jobs at the same time (%(default)s)"
    )
    parser.add_argument(
        "--precision",
        choices=FLOAT32,
        default=FLOAT32[0],
        help="of products of float32 matrices (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=480.0,
        help="begin no job later than this (default: %(default)s)",
    )
    return parser.parse_args()


def run(args: argparse.Namespace) -> None:
    """Train the jobs that the flags name."""
    require_jax()
    args.to.mkdir(parents=True, exist_ok=True)
    if args.only is None:
        run_all(args)
    else:
        run_one(args)


def main() -> int:
    """Train jobs; return 0, or 1 if a job failed or did not begin in time."""
    args = parse_flags()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
