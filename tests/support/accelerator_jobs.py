"""Jobs and outcomes for the tests of training on an accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.accelerator.program import run_program
from benchmarks.accelerator.rows.export import job_of
from benchmarks.accelerator.rows.job import Job, Outcome
from t2t_repro.data.prepared import PreparedData
from t2t_repro.runs.run import describe_run
from t2t_repro.runs.training_config import resolved_hparams
from t2t_repro.settings.train_settings import TrainSettings


def make_job(
    data: PreparedData,
    hparams_set: str,
    hparams: str,
    seeds: Sequence[int] = (4, 5),
    **others: Any,
) -> Job:
    """Return a job of eight updates, measured after every second one."""
    settings = TrainSettings(
        output_dir="",
        hparams_set=hparams_set,
        hparams=hparams,
        train_steps=8,
        save_checkpoints_steps=2,
        average_last=2,
        decode_hparams="beam_size=3,extra_length=5",
    )
    run = describe_run(settings, resolved_hparams(settings), data.problem.name, data)
    return job_of(others.pop("name", "job"), run, data, seeds, **others)


def call(program: ModuleType, flags: Sequence[str]) -> int:
    return run_program(program.__doc__, program.add_flags, program.run, flags)


def make_outcome(digest: str, **arrays: np.ndarray) -> Outcome:
    measured = {
        "steps": np.array([2, 4]),
        "loss": np.zeros((2, 2)),
        "nll": np.array([[3.0, 2.5], [2.0, 1.5]]),
        "nll/last": np.array([2.0, 1.5]),
        "nll/averaged": np.array([1.25, 1.0]),
    }
    return Outcome(
        digest=digest,
        seconds=7.25,
        processes=3,
        device="a GPU",
        precision="float32",
        versions={"jax": "1"},
        parameters=1,
        arrays=measured | arrays,
    )
