"""Read `metrics.jsonl`, the metrics of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

METRICS_FILE = "metrics.jsonl"


def read_metrics(output_dir: str | Path) -> list[dict[str, Any]]:
    """Return the records of a run's metrics, without a line cut short by a crash.

    Args:
        output_dir: Folder of the run; without metrics, there are no records.
    """
    lines = read_lines(output_dir)
    return [json.loads(line) for line in lines if step_of(line) < math.inf]


def read_lines(output_dir: str | Path) -> list[str]:
    """Return all lines of a run's metrics, with their ends."""
    try:
        text = (Path(output_dir) / METRICS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return text.splitlines(keepends=True)


def step_of(line: str) -> float:
    """Return the step of a line; a line cut short by a crash is after all steps."""
    if not line.endswith("\n"):
        return math.inf
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf
