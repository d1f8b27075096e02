"""Result files: measured scores, with their commands, data and hardware.

The package includes the files in its folder `data/results`. Only runs write them; their
numbers are never edited. A file belongs to a system, which may be in several tables.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.machine import available_cores, processor_name

FOLDER = "data/results"
NOT_YET = "not yet measured"  # in place of a result
SCALES = ("paper", "small", "long")
# The folder of a run contains other JSON files, too.
_FILE_NAME = re.compile(rf".+-({'|'.join(SCALES)})-[0-9]+\.json")


@dataclasses.dataclass(frozen=True)
class Result:
    """Result of one run of one system.

    Attributes:
        system: Name of the system, `Row.system`.
        scale: "small", "long" or "paper".
        seed: Random seed of weights, dropout and data order.
        scores: Measured value by name: "BLEU (test)", "perplexity (dev)", ... At the
            long scale, these belong to the last checkpoint, and `averaged_score` names
            those of the average.
        signature: Signature of sacreBLEU; empty without BLEU.
        steps: Number of updates.
        seconds: Time of the updates, without saving and evaluation.
        parameters: Number of parameters of the trained model.
        commands: Commands that reproduce the result, in order. At the long scale, `t2t
            reproduce` also computes the nll of the average and BLEU on two splits.
        data: sha256 of each file of text, by name.
        hardware: Processor, and number of its cores that the run could use.
        versions: Versions of the software.
    """

    system: str
    scale: str
    seed: int
    scores: Mapping[str, float]
    signature: str
    steps: int
    seconds: float
    parameters: int
    commands: tuple[str, ...]
    data: Mapping[str, str]
    hardware: str
    versions: Mapping[str, str]

    @property
    def file_name(self) -> str:
        """Name of the file of this result."""
        return f"{self.system}-{self.scale}-{self.seed}.json"

    def save(self, folder: str | Path) -> Path:
        """Write the result to a folder, atomically, and return the path of its file.

        If another row of the same system wrote the file, with other scores of as long
        a training run, both rows' scores are kept.
        """
        path = Path(folder) / self.file_name
        result = self._add_scores(path) if path.is_file() else self
        text = json.dumps(dataclasses.asdict(result), indent=2, ensure_ascii=False)
        atomic_write(path, text + "\n")
        return path

    def _add_scores(self, path: Path) -> Result:
        """Add the scores and commands of a file, unless this result replaces it."""
        try:
            other = read_result(path.read_text(encoding="utf-8"))
        except ValueError:  # Damaged, so there is nothing to keep.
            return self
        same_training = (other.steps, other.data) == (self.steps, self.data)
        if not same_training or other.scores.keys() & self.scores.keys():
            return self
        commands = dict.fromkeys((*other.commands, *self.commands))
        return dataclasses.replace(
            self,
            scores={**other.scores, **self.scores},
            commands=tuple(commands),
        )


def averaged_score(name: str) -> str:
    """Return the name of a score of the average, where the last checkpoint has one."""
    return f"{name}, averaged"


def read_result(text: str) -> Result:
    """Parse a text that `Result.save` wrote.

    Raises:
        ValueError: If the text is not a result.
    """
    try:
        values = json.loads(text)
        return Result(**(values | {"commands": tuple(values["commands"])}))
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a result: {error}") from error


@cache
def shipped_results() -> tuple[Result, ...]:
    """Return the results that the package includes, ordered by file name."""
    folder = resources.files("t2t_repro.features.reproduction") / FOLDER
    if not folder.is_dir():
        return ()
    return results_in(folder)


def results_with(folder: str | Path | None) -> tuple[Result, ...]:
    """Return the package's results and those of a folder.

    If two results have the same file name, the folder's is returned.

    Raises:
        UserError: If the folder does not exist, or contains a damaged result.
    """
    if folder is None:
        return shipped_results()
    if not Path(folder).is_dir():
        raise UserError(f"received result_dir={folder}, expected an existing folder.")
    try:
        own = results_in(Path(folder))
    except ValueError as error:
        raise UserError(
            f"received result_dir={folder}, expected files that `t2t reproduce "
            f"--run` wrote: {error}"
        ) from error
    by_name = {result.file_name: result for result in (*shipped_results(), *own)}
    return tuple(by_name[name] for name in sorted(by_name))


def results_in(folder: Traversable) -> tuple[Result, ...]:
    """Return the results of a folder, ordered by file name.

    Raises:
        ValueError: If a file with a result's name is none.
    """
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        read_result(file.read_text(encoding="utf-8"))
        for file in files
        if _FILE_NAME.fullmatch(file.name)
    )


def hardware() -> str:
    """Describe the hardware of this process, e.g. "1 of 2 x PROCESSOR"."""
    cpu = processor_name()
    cores = os.cpu_count() or 1
    # A process may be limited to fewer cores; only Linux reports it.
    granted = available_cores()
    return f"{cores} x {cpu}" if granted == cores else f"{granted} of {cores} x {cpu}"


COURSE_FILE = resources.files("t2t_repro.features.reproduction") / "data/course.json"


@dataclasses.dataclass(frozen=True)
class Course:
    """Two numbers per seed of the long scale, each from the smallest to the largest.

    Attributes:
        relative_updates: Updates of the Weighted Transformer over those of the
            Transformer for the same dev nll.
        branch_spreads: Largest ratio of two branch weights of a layer of the Weighted
            Transformer, at the end.
    """

    relative_updates: Sequence[float] = ()
    branch_spreads: Sequence[float] = ()

    def save(self, path: Path) -> None:
        """Write the numbers to a file, atomically."""
        atomic_write(path, json.dumps(dataclasses.asdict(self), indent=2) + "\n")


NO_COURSE = Course()


@cache
def shipped_course() -> Course:
    """Return the numbers that the package includes."""
    return Course(**json.loads(COURSE_FILE.read_text(encoding="utf-8")))
