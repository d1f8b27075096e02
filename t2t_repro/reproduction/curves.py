"""Curve files: the course of a training, small enough for the repository.

`t2t reproduce --record RUN` writes one from the `hparams.json` and `metrics.jsonl` of a
finished training. Numbers are never edited.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import atomic_write

FOLDER = "curves"
_NAME = re.compile(r"[\w-][\w.-]*")
_DIGITS = 5  # after the point; enough for every comparison between seeds


@dataclasses.dataclass(frozen=True)
class Curve:
    """Course of one training.

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

    @property
    def file_name(self) -> str:
        """Name of the file of this curve."""
        return f"{self.name}-{self.seed}.json"

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
    """Return the curve of a finished training.

    Args:
        run: Folder of the training.
        name: Name of the setting: letters, digits, "_", "-" and ".".

    Raises:
        UsageError: If the name is not one.
        UserError: If the folder holds no training that wrote metrics, or the training
            has not reached its last step.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"received name={name!r}, expected letters, digits, '_', '-' and '.', "
            "because a file gets this name."
        )
    folder = Path(run)
    try:
        description = json.loads((folder / "hparams.json").read_text(encoding="utf-8"))
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(
            f"received run={run}, expected the folder of a training, with hparams.json "
            f"and metrics.jsonl: {error.strerror}."
        ) from error
    records = [json.loads(line) for line in lines]
    evaluations = _by_step(records, "eval")
    planned = description["training"]["train_steps"]
    if planned not in evaluations:
        raise UserError(
            f"received run={run}, expected a finished training: its last evaluation is "
            f"of step {max(evaluations, default=0)}, not {planned}."
        )
    return Curve(
        name=name,
        seed=description["random_seed"],
        problem=description["problem"],
        hparams_set=description["hparams_set"],
        settings=_settings(description["hparams"]),
        data_digest=description["data_digest"],
        versions=description["versions"],
        steps=sorted(evaluations),
        nll=[_rounded(evaluations[step]["nll"]) for step in sorted(evaluations)],
        branches=_branches(_by_step(records, "branches"), sorted(evaluations)),
        seconds=round(training_seconds(records), 1),
    )


def training_seconds(records: Sequence[Mapping[str, Any]]) -> float:
    """Sum the times between lines of metrics, because training may have paused.

    The first updates of their shapes count with their own time, not with the rate of
    the others. Lines of earlier versions, without their number, count them twice.

    Args:
        records: Lines of `metrics.jsonl`, of any split.
    """
    seconds, before = 0.0, 0
    for step, record in sorted(_by_step(records, "train").items()):
        # No rate: all steps were the first ones of their shapes.
        rate = record.get("steps_per_second", math.inf)
        timed = step - before - record.get("compiled_updates", 0)
        seconds += timed / rate + record.get("compile_seconds", 0.0)
        before = step
    return seconds


@cache
def shipped_curves() -> tuple[Curve, ...]:
    """Return the curves that the package includes, ordered by file name."""
    folder = resources.files("t2t_repro.reproduction") / FOLDER
    return curves_in(folder) if folder.is_dir() else ()


def curves_in(folder: Traversable) -> tuple[Curve, ...]:
    """Return the curves of a folder, ordered by file name."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        Curve(**json.loads(file.read_text(encoding="utf-8")))
        for file in files
        if file.name.endswith(".json")
    )


def _by_step(
    records: Sequence[Mapping[str, Any]], split: str
) -> dict[int, Mapping[str, Any]]:
    """Return the last record of each step: a resumed training may repeat steps."""
    return {record["step"]: record for record in records if record["split"] == split}


def _settings(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hparams that were given for this run."""
    origins = hparams["origins"]
    return {name: hparams[name] for name in origins if origins[name] == "--hparams"}


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
    return {name: [_rounded(records[step][name]) for step in steps] for name in names}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
