"""Train two seeds at once and one after the other on JAX; write both as arrays."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from pathlib import Path

import jax
import numpy as np

from benchmarks.accelerator.jax_step import make_update
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.job import AVERAGED, CORPUS_FILE, Job, load_jobs
from benchmarks.accelerator.rows.seeds import SeedTraining, device_batches, train
from benchmarks.accelerator.rows.train import dev_batch


def one_after_the_other(
    job: Job, corpus: Corpus, kinds: list[int]
) -> list[list[list[np.ndarray]]]:
    """Return the state of each seed after each update, trained alone."""
    courses = []
    for seed in job.seeds:
        own = dataclasses.replace(job, seeds=[seed])
        alone = SeedTraining(own, job.hparams, {})
        step = jax.jit(make_update(alone.model, alone.optimizer, job.hparams))
        state = jax.tree.map(lambda x: x[0], alone.state)
        course, used = [], Counter()
        for kind in kinds:
            number = used[kind]
            used[kind] += 1
            batch = corpus.batches(seed, kind, number + 1)
            batch = {k: x[number].astype("int32") for k, x in batch.items()}
            state, _ = step(state, batch)
            course.append([np.asarray(x) for x in jax.tree.leaves(state)])
        courses.append(course)
    return courses


def main(jobs: str, to: str) -> None:
    (job,) = load_jobs(Path(jobs))
    corpus = Corpus.load(Path(jobs) / CORPUS_FILE)
    kinds = corpus.order[: job.updates].tolist()
    seeds = SeedTraining(job, job.hparams, {})
    step = seeds.compile(device_batches(corpus, job))
    nll = seeds.dev_nll(dev_batch(corpus, job.hparams.max_length))
    measured, systems, _ = train(job, seeds, step, nll, kinds, print)
    averaged = systems[AVERAGED]
    courses = one_after_the_other(job, corpus, kinds)
    arrays = {
        f"together/{n}": np.asarray(x)
        for n, x in enumerate(jax.tree.leaves(seeds.state))
    }
    arrays |= {
        f"alone/{n}": np.stack([course[-1][n] for course in courses])
        for n in range(len(courses[0][-1]))
    }
    arrays |= {f"averaged/{n}": np.asarray(x) for n, x in enumerate(averaged)}
    every = job.measure_every
    points = [course[every - 1 :: every][-job.average_last :] for course in courses]
    arrays |= {
        f"mean/{n}": np.array([[x[n] for x in course] for course in points]).mean(1)
        for n in range(len(averaged))
    }
    np.savez(to, nll=measured["nll"], **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
