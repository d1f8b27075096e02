"""Result files: what was measured, how, on what, and by which command.

They lie beside this module and travel with the package. A run writes one; nobody
types a number into one. They belong to systems, not to rows: the same one stands in
several tables.
"""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from t2t_repro.files import write_whole

FOLDER = "results"


@dataclasses.dataclass(frozen=True)
class Result:
    """One run of one system.

    Attributes:
        system: Its name, `Row.system`.
        scale: "small" or "paper".
        seed: Of weights, dropout and data order.
        scores: Measured value by name: "bleu", "perplexity", ...
        signature: sacreBLEU's, where there is a BLEU.
        steps: Updates.
        seconds: Of training, evaluations included.
        parameters: Of the model that was trained.
        commands: What was typed, in order.
        data: What was trained and tested on: file name to sha256.
        hardware: Of the machine.
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
        write_whole(path, text + "\n")
        return path


def read_result(text: str) -> Result:
    """Read what `Result.save` wrote."""
    values = json.loads(text)
    return Result(**(values | {"commands": tuple(values["commands"])}))


@cache
def shipped_results() -> tuple[Result, ...]:
    """Return the results that the package holds, in the order of their names."""
    folder = resources.files("t2t_repro.reproduction") / FOLDER
    if not folder.is_dir():
        return ()
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        read_result(file.read_text(encoding="utf-8"))
        for file in files
        if file.name.endswith(".json")
    )


def results_of(system: str, scale: str) -> list[Result]:
    """Return the shipped results of a system at a scale, one for each seed."""
    return [
        result
        for result in shipped_results()
        if (result.system, result.scale) == (system, scale)
    ]


def hardware() -> str:
    """Describe this machine in a line: processor, cores, memory."""
    cpu = platform.processor() or platform.machine()
    cores = 0
    path = Path("/proc/cpuinfo")
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        names = [
            line.partition(":")[2].strip() for line in lines if "model name" in line
        ]
        cpu, cores = (names[0], len(names)) if names else (cpu, 0)
    return f"{cores} x {cpu}" if cores else cpu
