"""Result files: what was measured, how, on what, and by which command.

They lie beside this module and travel with the package. A run writes one; nobody
types a number into one. They belong to systems, not to rows: the same one stands in
several tables.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write

FOLDER = "results"
SCALES = ("paper", "small")
# A run's own folder has other JSON files, too.
_FILE_NAME = re.compile(rf".+-({'|'.join(SCALES)})-[0-9]+\.json")


@dataclasses.dataclass(frozen=True)
class Result:
    """One run of one system.

    Attributes:
        system: Its name, `Row.system`.
        scale: "small" or "paper".
        seed: Of weights, dropout and data order.
        scores: Measured value by name: "BLEU (test)", "perplexity (dev)", ...
        signature: sacreBLEU's, where there is a BLEU.
        steps: Updates.
        seconds: Of the updates; saving and evaluating is left out.
        parameters: Of the model that was trained.
        commands: What was typed, in order.
        data: What was trained and tested on: file name to sha256.
        hardware: The processor, and how many of its cores the run could use.
        versions: Of the software.
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
        """The name of its file."""
        return f"{self.system}-{self.scale}-{self.seed}.json"

    def save(self, folder: str | Path) -> Path:
        """Write the file into a folder, whole or not at all, and return its path."""
        path = Path(folder) / self.file_name
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        atomic_write(path, text + "\n")
        return path


def read_result(text: str) -> Result:
    """Read what `Result.save` wrote.

    Raises:
        ValueError: If it is something else.
    """
    try:
        values = json.loads(text)
        return Result(**(values | {"commands": tuple(values["commands"])}))
    except (TypeError, KeyError) as error:
        raise ValueError(f"no result: {error}") from error


@cache
def shipped_results() -> tuple[Result, ...]:
    """Return the results that the package holds, in the order of their names."""
    folder = resources.files("t2t_repro.reproduction") / FOLDER
    if not folder.is_dir():
        return ()
    return _results_in(folder)


def results_with(folder: str | Path | None) -> tuple[Result, ...]:
    """Return the package's results and a folder's, which replace those of one name.

    Raises:
        UserError: If the folder is not there, or holds a broken result.
    """
    if folder is None:
        return shipped_results()
    if not Path(folder).is_dir():
        raise UserError(f"received --result_dir {folder}, expected an existing folder.")
    try:
        own = _results_in(Path(folder))
    except ValueError as error:
        raise UserError(
            f"received --result_dir {folder}, expected files that `t2t reproduce "
            f"--run` wrote: {error}"
        ) from error
    by_name = {result.file_name: result for result in (*shipped_results(), *own)}
    return tuple(by_name[name] for name in sorted(by_name))


def _results_in(folder: Traversable) -> tuple[Result, ...]:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        read_result(file.read_text(encoding="utf-8"))
        for file in files
        if _FILE_NAME.fullmatch(file.name)
    )


def hardware() -> str:
    """Describe in a line what this process runs on: "1 of 2 x PROCESSOR"."""
    cpu = _processor()
    cores = os.cpu_count() or 1
    # taskset and containers may grant fewer; only Linux can tell.
    granted = len(os.sched_getaffinity(0)) if sys.platform == "linux" else cores
    return f"{cores} x {cpu}" if granted == cores else f"{granted} of {cores} x {cpu}"


def _processor() -> str:
    """Return the processor's name."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
