"""What the training of a job left."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.accelerator.arrays import Arrays
from benchmarks.accelerator.rows.job import Job, load_jobs
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write

SYSTEMS = ("last", "averaged")  # of `Outcome.ids`
LAST, AVERAGED = range(len(SYSTEMS))
_SCALARS = {
    "digest": str,
    "seconds": float,
    "processes": int,
    "device": str,
    "precision": str,
    "versions": str,
    "parameters": int,
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the training of a job left.

    Attributes:
        digest: `Job.digest` of the job.
        steps: Steps of the measurements, int `[points]`.
        loss: Mean training loss since the point before, float `[points, seeds]`.
        nll: Nll of dev per target token, float `[points, seeds]`.
        averaged_nll: That of the averaged weights, float `[seeds]`.
        ids: Translations by the last and the averaged weights, uint16
            `[2, seeds, sources, length]`.
        seconds: Time of the updates of all seeds, without compilation and measurements.
        processes: Largest number of jobs that trained at the same time.
        device: Kind of the device.
        precision: Precision of the training, a name of `measure.PRECISIONS`.
        versions: Versions of the software, as JSON.
        parameters: Number of parameters of the model.
        arrays: Kappa and alpha `[points, seeds, branches]` under "branches/<path>", and
            the averaged weights `[seeds, ...]`, if they are kept, under
            "averaged/<path>".
    """

    digest: str
    steps: np.ndarray
    loss: np.ndarray
    nll: np.ndarray
    averaged_nll: np.ndarray
    ids: np.ndarray
    seconds: float
    processes: int
    device: str
    precision: str
    versions: str
    parameters: int
    arrays: Arrays

    def final_nll(self, system: int) -> np.ndarray:
        """Return the nll of dev with the weights of a system, float `[seeds]`."""
        return self.averaged_nll if system == AVERAGED else self.nll[-1]

    def save(self, path: Path) -> None:
        """Write the outcome to a file, atomically."""
        named = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        arrays = named.pop("arrays")
        file = io.BytesIO()
        np.savez_compressed(file, **named, **arrays)
        atomic_write(path, file.getvalue())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read an outcome."""
        with np.load(path) as file:
            arrays = dict(file)
        names = [f.name for f in dataclasses.fields(cls) if f.name != "arrays"]
        own: dict[str, Any] = {name: arrays.pop(name) for name in names}
        own |= {name: kind(own[name]) for name, kind in _SCALARS.items()}
        return cls(**own, arrays=arrays)


def outcome_path(folder: Path, job: Job) -> Path:
    """Return the path of a job's outcome in a folder."""
    return folder / f"{job.name}.npz"


def has_outcome(job: Job, jobs: Path, outcomes: Path) -> bool:
    """Return whether a folder has the outcome of a job as it is now.

    Args:
        job: The job.
        jobs: Its folder.
        outcomes: Folder of the outcomes.
    """
    path = outcome_path(outcomes, job)
    if not path.is_file():
        return False
    with np.load(path) as file:
        return str(file["digest"]) == job.digest(jobs)


def load_outcomes(jobs: Path, outcomes: Path) -> Iterator[tuple[Job, Outcome]]:
    """Yield the jobs that have been trained, with their outcomes.

    Args:
        jobs: Folder of the jobs.
        outcomes: Folder of the outcomes.

    Raises:
        UserError: If there is none.
    """
    known = load_jobs(jobs)
    trained = [job for job in known if has_outcome(job, jobs, outcomes)]
    if not trained:
        raise UserError(
            f"received outcomes={outcomes}, expected the outcome of a job in {jobs}: "
            "train them first."
        )
    for job in trained:
        yield job, Outcome.load(outcome_path(outcomes, job))
