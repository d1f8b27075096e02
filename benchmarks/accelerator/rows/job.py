"""Models to train on an accelerator, and what their training left; no TensorFlow."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import keras
import numpy as np

from benchmarks.accelerator.rows.corpus import Arrays, Corpus, save_arrays
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams

JOBS_FILE, CORPUS_FILE, STATE_FILE = "jobs.json", "corpus.npz", "state.npz"
SYSTEMS = LAST, AVERAGED = "last", "averaged"


@dataclasses.dataclass(frozen=True)
class Job:
    """A model to train with several seeds.

    Attributes:
        name: Name of its outcome's file.
        run: Values of the `hparams.json` of its run, except those of a seed.
        vocab_sizes: Sizes of the source and the target vocabulary.
        has_one_vocabulary: Whether they are the same one.
        seeds: The seeds.
        updates: Number of updates.
        measure_every: Number of updates between measurements, which divides theirs.
        average_last: Number of measured steps to average.
        row: The row of the papers' tables, as TABLE/ROW; empty if it is of none.
        scale: Scale of the row.
        counters: The `TokenCounters` of the model, or None.
        keeps_weights: Whether to keep the averaged weights of every seed.
        resumes: Whether the first update begins with the state in `STATE_FILE`, and the
            last state is kept, so that the run can be resumed.
        first_step: Number of updates before the first one.
        position: Complete passes over the data and batches of the next one, after the
            last update of the first seed.
    """

    name: str
    run: dict[str, Any]
    vocab_sizes: Sequence[int]
    has_one_vocabulary: bool
    seeds: Sequence[int]
    updates: int
    measure_every: int
    average_last: int
    row: str = ""
    scale: str = ""
    counters: Any = None
    keeps_weights: bool = False
    resumes: bool = False
    first_step: int = 0
    position: Sequence[int] = (0, 0)

    @property
    def hparams(self) -> HParams:
        """The complete hparams; two vocabularies share no weights, as in a `Run`."""
        hparams = HParams.from_dict(self.run["hparams"])
        return hparams.for_vocabularies(shared=self.has_one_vocabulary)

    @property
    def decode_hparams(self) -> DecodeHParams:
        """Settings of the search."""
        return DecodeHParams().parse(self.run["training"]["decode_hparams"])

    @property
    def last_step(self) -> int:
        """Number of updates after the last one."""
        return self.first_step + self.updates

    def digest(self, folder: Path) -> str:
        """Return the sha256 of the job in a folder, and of the files that it reads."""
        digest = hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode())
        for name in (CORPUS_FILE, *[STATE_FILE] * self.resumes):
            digest.update((folder / name).read_bytes())
        return digest.hexdigest()


def save_jobs(folder: Path, jobs: Sequence[Job], corpus: Corpus) -> None:
    """Write jobs and their corpus to a folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus.save(folder / CORPUS_FILE)
    text = json.dumps([vars(job) for job in jobs], indent=1)
    atomic_write(folder / JOBS_FILE, text + "\n")


def load_jobs(folder: Path) -> list[Job]:
    """Read the jobs in a folder.

    Raises:
        UserError: If there are none.
    """
    path = folder / JOBS_FILE
    if not path.is_file():
        raise UserError(f"received {folder}, expected a folder with {JOBS_FILE} in it.")
    return [Job(**values) for values in json.loads(path.read_text(encoding="utf-8"))]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a job.

    Attributes:
        digest: `Job.digest` of the job.
        seconds: Time of the updates of all seeds, without compilation and measurements.
        processes: Largest number of jobs that trained at the same time.
        device: Kind of the device.
        precision: Precision of the training, a name of `jax_step.PRECISIONS`.
        versions: Versions of the software.
        parameters: Number of parameters of the model.
        arrays: By name:

            - "steps" of the measurements, int `[points]`;
            - mean training "loss" since the point before, and "nll" of dev per target
              token, float `[points, seeds]`;
            - "branches/<path>", kappa and alpha, float `[points, seeds, branches]`;
            - "nll/<system>" of `SYSTEMS`, float `[seeds]`, and "ids/<system>", their
              translations, uint16 `[seeds, sources, length]`;
            - "averaged/<path>", the averaged weights, and "state/<name>", the last
              state, `[seeds, ...]`, if they are kept.
    """

    digest: str
    seconds: float
    processes: int
    device: str
    precision: str
    versions: Mapping[str, str]
    parameters: int
    arrays: Arrays

    def save(self, path: Path) -> None:
        """Write the outcome to a file, atomically."""
        facts = {name: x for name, x in vars(self).items() if name != "arrays"}
        save_arrays(path, {"facts": json.dumps(facts), **self.arrays})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read an outcome."""
        with np.load(path) as file:
            arrays = dict(file)
        return cls(**json.loads(str(arrays.pop("facts"))), arrays=arrays)


def has_outcome(job: Job, jobs: Path, outcomes: Path) -> bool:
    """Return whether a folder has the outcome of a job as it is now."""
    path = outcomes / f"{job.name}.npz"
    return path.is_file() and Outcome.load(path).digest == job.digest(jobs)


def load_outcomes(jobs: Path, outcomes: Path) -> Iterator[tuple[Job, Outcome]]:
    """Yield the jobs that have been trained, with their outcomes.

    Raises:
        UserError: If there is none.
    """
    trained = [job for job in load_jobs(jobs) if has_outcome(job, jobs, outcomes)]
    if not trained:
        raise UserError(
            f"received outcomes={outcomes}, expected the outcome of a job in {jobs}: "
            "train them first."
        )
    for job in trained:
        yield job, Outcome.load(outcomes / f"{job.name}.npz")


def state_variables(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> dict[str, keras.Variable]:
    """Return everything that an update changes, in the order of `jax_step.TrainState`.

    The names are the same on all backends: states of dropout, whose paths differ
    between processes, have a number.
    """
    states = enumerate(model.non_trainable_variables)
    return {
        **{f"model/{v.path}": v for v in model.trainable_variables},
        **{f"random/{number}": v for number, v in states},
        **{f"optimizer/{v.path}": v for v in optimizer.variables},
    }
