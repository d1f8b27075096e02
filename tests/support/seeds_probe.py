"""Train two seeds at once and one after the other on JAX; write both as arrays."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np

from benchmarks.accelerator.jax_step import make_step
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.job import Job, load_jobs
from benchmarks.accelerator.rows.seeds import SeedTraining, device_batches, train
from benchmarks.accelerator.rows.train import dev_batch


def one_after_the_other(
    job: Job, corpus: Corpus, shapes: list[int]
) -> list[list[list[np.ndarray]]]:
    """Return the state of each seed after each update, trained alone."""
    courses = []
    for seed in job.seeds:
        alone = SeedTraining.begin(
            job.hparams, job.vocab_sizes, [seed], job.train_steps
        )
        step = make_step(alone.model, alone.optimizer, job.hparams)
        state = jax.tree.map(lambda x: x[0], alone.state)
        course, used = [], {}
        for shape in shapes:
            number = used.get(shape, 0)
            used[shape] = number + 1
            batch = corpus.batches(seed, shape, number + 1)
            batch = {k: x[number].astype("int32") for k, x in batch.items()}
            state, _ = step(jax.tree.map(jax.numpy.array, state), batch)
            course.append([np.asarray(x) for x in jax.tree.leaves(state)])
        courses.append(course)
    return courses


def main(jobs: str, to: str) -> None:
    (job,) = load_jobs(Path(jobs))
    corpus = Corpus.load(Path(jobs) / job.corpus)
    shapes = corpus.orders[job.seeds[0]].shapes[: job.train_steps].tolist()
    seeds = SeedTraining.begin(job.hparams, job.vocab_sizes, job.seeds, job.train_steps)
    counts = np.bincount(shapes, minlength=len(corpus.shapes))
    step = seeds.compile(device_batches(corpus, job.seeds, counts))
    nll = seeds.dev_nll(dev_batch(corpus, job.hparams.max_length))
    trained = train(
        seeds,
        step,
        nll,
        shapes,
        measure_every=job.measure_every,
        average_last=job.average_last,
        report=lambda *_: None,
    )
    courses = one_after_the_other(job, corpus, shapes)
    arrays = {
        f"together/{n}": np.asarray(x)
        for n, x in enumerate(jax.tree.leaves(seeds.state))
    }
    arrays |= {
        f"alone/{n}": np.stack([course[-1][n] for course in courses])
        for n in range(len(courses[0][-1]))
    }
    arrays |= {f"averaged/{n}": np.asarray(x) for n, x in enumerate(trained.averaged)}
    every = job.measure_every
    measured = [course[every - 1 :: every][-job.average_last :] for course in courses]
    arrays |= {
        f"mean/{n}": np.array([[x[n] for x in course] for course in measured]).mean(1)
        for n in range(len(trained.averaged))
    }
    np.savez(to, nll=np.array(trained.curves.nll), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
