"""What the papers say about the course of training runs, measured on ours.

`t2t reproduce text` shows these numbers. `t2t reproduce --page` derives them from the
learning curves, which only a checkout has, and writes the file of the package.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from t2t_repro.files import atomic_write

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
