"""Description of one model to train with several seeds, and what its training left."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.accelerator.arrays import Arrays, read_arrays
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams

JOBS_FILE = "jobs.json"
SYSTEMS = ("last", "averaged")  # of `Outcome.ids`
LAST, AVERAGED = range(len(SYSTEMS))


@dataclasses.dataclass(frozen=True)
class Job:
    """A model to train with several seeds.

    Attributes:
        name: Name of its outcome's file.
        corpus: Name of the corpus file.
        hparams: The complete hparams.
        vocab_sizes: Sizes of the source and the target vocabulary.
        seeds: The seeds.
        train_steps: Number of updates.
        measure_every: Number of steps between measurements.
        average_last: Number of measured steps to average.
        search: Settings of the search, in the form of `--decode_hparams`.
        details: What the importing program needs to know.
        keeps_weights: Whether to keep the averaged weights of the first seed.
    """

    name: str
    corpus: str
    hparams: HParams
    vocab_sizes: tuple[int, int]
    seeds: tuple[int, ...]
    train_steps: int
    measure_every: int
    average_last: int
    search: str = ""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    keeps_weights: bool = False

    @property
    def decode_hparams(self) -> DecodeHParams:
        """Settings of the search."""
        return DecodeHParams().parse(self.search)


def save_jobs(jobs: list[Job], folder: Path) -> None:
    """Write jobs to a folder."""
    names = [field.name for field in dataclasses.fields(Job)]
    values = [
        {name: getattr(job, name) for name in names}
        | {"hparams": job.hparams.to_dict()}
        for job in jobs
    ]
    atomic_write(folder / JOBS_FILE, json.dumps(values, indent=1) + "\n")


def load_jobs(folder: Path) -> list[Job]:
    """Read the jobs in a folder.

    Raises:
        UserError: If there are none.
    """
    path = folder / JOBS_FILE
    if not path.is_file():
        raise UserError(f"received {folder}, expected a folder with {JOBS_FILE} in it.")
    return [
        Job(
            **values
            | {
                "hparams": HParams.from_dict(values["hparams"]),
                "vocab_sizes": tuple(values["vocab_sizes"]),
                "seeds": tuple(values["seeds"]),
            }
        )
        for values in json.loads(path.read_text(encoding="utf-8"))
    ]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the training of a job left.

    Attributes:
        steps: Steps of the measurements, int `[points]`.
        loss: Mean training loss since the point before, float `[points, seeds]`.
        nll: Nll of dev per target token, float `[points, seeds]`.
        averaged_nll: That of the averaged weights, float `[seeds]`.
        ids: Translations by the last and the averaged weights, int16
            `[2, seeds, sources, length]`.
        seconds: Time of the updates and measurements of all seeds, without compilation.
        device: Kind of the device.
        precision: Precision of the training, a name of `measure.PRECISIONS`.
        versions: Versions of the software, as JSON.
        parameters: Number of parameters of the model.
        arrays: Kappa and alpha `[points, seeds, branches]` under "branches/<path>", and
            the averaged weights of the first seed, if they are kept, under
            "averaged/<path>".
    """

    steps: np.ndarray
    loss: np.ndarray
    nll: np.ndarray
    averaged_nll: np.ndarray
    ids: np.ndarray
    seconds: float
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
        """Read an outcome.

        Raises:
            UserError: If there is none.
        """
        arrays = read_arrays(path)
        names = [f.name for f in dataclasses.fields(cls) if f.name != "arrays"]
        own: dict[str, Any] = {name: arrays.pop(name) for name in names}
        scalars = {"seconds": float, "device": str, "precision": str, "versions": str}
        scalars["parameters"] = int
        own |= {name: kind(own[name]) for name, kind in scalars.items()}
        return cls(**own, arrays=arrays)
