"""Curve files: the learning curve of a training run, small enough for the repository.

`t2t reproduce --record RUN` writes one from the `hparams.json` and `metrics.jsonl` of a
finished training run. Numbers are never edited.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import atomic_write
from t2t_repro.runs.run import Run
from t2t_repro.training.evaluations import is_exhausted
from t2t_repro.training.metrics_file import (
    BRANCHES_SPLIT,
    EVAL_SPLIT,
    TRAIN_SPLIT,
    by_step,
    read_metrics,
    training_seconds,
)

_NAME = re.compile(r"[\w-][\w.-]*")
_DIGITS = 5  # after the point; enough for every comparison between seeds


@dataclasses.dataclass(frozen=True)
class Curve:
    """Learning curve of one training run.

    Attributes:
        name: Name of the setting; the runs of its seeds share it.
        seed: Random seed.
        problem: Name of the problem.
        hparams_set: Name of the hparams set.
        settings: Hparams that differ from the set.
        data_digest: Digest of the prepared data.
        versions: Versions of the software.
        steps: Steps of the points below.
        nll: Negative log-likelihood per token on dev, at each step.
        training_nll: The same on the training batches since the step before, with
            dropout; empty in files that were recorded without it.
        branches: Each weight of a branch at each step, by layer, kind and number:
            "encoder/layer_0/kappa/3"; empty without branches.
        seconds: Time of the updates, without saving and evaluation.
    """

    name: str
    seed: int
    problem: str
    hparams_set: str
    settings: Mapping[str, Any]
    data_digest: str
    versions: Mapping[str, str]
    steps: Sequence[int]
    nll: Sequence[float]
    branches: Mapping[str, Sequence[float]]
    seconds: float
    training_nll: Sequence[float] = ()

    @property
    def file_name(self) -> str:
        """Name of the file of this curve."""
        return f"{self.name}-{self.seed}.json"

    def branches_by_layer(self) -> dict[str, list[Sequence[float]]]:
        """Return the weights of the branches by layer and kind, a list per branch."""
        found: dict[str, list[Sequence[float]]] = {}
        for name, values in self.branches.items():
            found.setdefault(name.rpartition("/")[0], []).append(values)
        return found

    def save(self, folder: str | Path) -> Path:
        """Write the curve to a folder, atomically, and return the path of its file.

        Raises:
            UserError: If the folder does not exist or cannot be written to.
        """
        if not Path(folder).is_dir() or not os.access(folder, os.W_OK):
            raise UserError(
                f"received result_dir={folder}, expected an existing folder that can "
                "be written to."
            )
        path = Path(folder) / self.file_name
        lines = [
            f'  "{key}": {json.dumps(value)}'
            for key, value in dataclasses.asdict(self).items()
        ]
        atomic_write(path, "{\n" + ",\n".join(lines) + "\n}\n")
        return path


def curve_of(run: str | Path, name: str) -> Curve:
    """Return the curve of a finished training run.

    Args:
        run: Folder of the training run.
        name: Name of the setting: letters, digits, "_", "-" and ".".

    Raises:
        UsageError: If the name is not one.
        UserError: If the folder holds no run that wrote metrics, or the run has
            neither reached its last step nor stopped early.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"received name={name!r}, expected letters, digits, '_', '-' and '.', "
            "because a file gets this name."
        )
    description = Run.load_existing(run)
    records = read_metrics(run)
    evaluations = by_step(records, EVAL_SPLIT)
    _check_finished(description, evaluations, run)
    return Curve(
        name=name,
        seed=description.random_seed,
        problem=description.problem,
        hparams_set=description.hparams_set,
        settings=description.hparams.given(),
        data_digest=description.data_digest,
        versions=description.versions,
        steps=sorted(evaluations),
        nll=[rounded(evaluations[step]["nll"]) for step in sorted(evaluations)],
        branches=_branches(by_step(records, BRANCHES_SPLIT), sorted(evaluations)),
        seconds=round(training_seconds(records), 1),
        training_nll=_training_nll(by_step(records, TRAIN_SPLIT), sorted(evaluations)),
    )


def _training_nll(
    records: Mapping[int, Mapping[str, Any]], steps: Sequence[int]
) -> list[float]:
    """Return the mean nll of the training batches up to each step since the last."""
    means = []
    for last, step in itertools.pairwise([0, *steps]):
        values = [x["nll"] for at, x in records.items() if last < at <= step]
        if not values:
            return []
        means.append(rounded(statistics.mean(values)))
    return means


def _check_finished(
    run: Run, evaluations: Mapping[int, Mapping[str, Any]], folder: str | Path
) -> None:
    """Refuse a training run that neither reached its last step nor stopped early.

    Args:
        run: Description of the training run.
        evaluations: Lines of its evaluations by step.
        folder: Folder of the training run, for messages.

    Raises:
        UserError: If the training run is to be resumed first.
    """
    settings = run.train_settings(folder)
    if settings.train_steps in evaluations or _stopped_early(run, evaluations):
        return
    raise UserError(
        f"received run={folder}, expected a finished run: its last evaluation is "
        f"of step {max(evaluations, default=0)}, not {settings.train_steps}."
    )


def _stopped_early(run: Run, evaluations: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether the last evaluations ended the run, as `Trainer` decides."""
    settings = run.train_settings("")
    if not settings.early_stopping_patience:
        return False
    run.load_catalogue()
    metric = catalogue.problem(run.problem).metric
    every = settings.steps_between_evaluations
    values = [
        evaluations[step][metric]
        for step in sorted(evaluations)
        if step % every == 0 and evaluations[step].get(metric) is not None
    ]
    return is_exhausted(values, settings.early_stopping_patience)


@cache
def recorded_curves() -> tuple[Curve, ...]:
    """Return the curves of the repository, ordered by file name."""
    return curves_in(resources.files("results") / "data/curves")


def curves_in(folder: Traversable) -> tuple[Curve, ...]:
    """Return the curves of a folder, ordered by file name."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        Curve(**json.loads(file.read_text(encoding="utf-8")))
        for file in files
        if file.name.endswith(".json")
    )


def _branches(
    records: Mapping[int, Mapping[str, Any]], steps: Sequence[int]
) -> dict[str, list[float]]:
    """Return the branch weights at some steps.

    Raises:
        UserError: If they were not written at a step.
    """
    if not records:
        return {}
    if missing := [step for step in steps if step not in records]:
        raise UserError(
            f"received a run without branch weights at step {missing[0]}, expected a "
            "local_eval_frequency that is a multiple of log_step_count_steps."
        )
    names = [name for name in records[steps[-1]] if "/" in name]
    return {name: [rounded(records[step][name]) for step in steps] for name in names}


def rounded(value: float) -> float:
    """Return a number with the digits that a curve file keeps."""
    return round(value, _DIGITS)
