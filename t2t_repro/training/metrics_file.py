"""Find and read the metrics of a run: `metrics.jsonl`, and TensorBoard's events.

This module imports no TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_repro.files import INCOMPLETE, matching, parse_json

METRICS_FILE = "metrics.jsonl"

# A line of metrics names its split, which has its events in a folder of this name.
# Other folders of events belong to other programs.
TRAIN_SPLIT = "train"
EVAL_SPLIT = "eval"
BRANCHES_SPLIT = "branches"
SPLITS = (TRAIN_SPLIT, EVAL_SPLIT, BRANCHES_SPLIT)


def event_files(output_dir: str | Path) -> list[Path]:
    """Return the event files of all splits of a run, such as those in `train/`."""
    files = all_event_files(output_dir)
    return [path for path in files if not path.name.endswith(INCOMPLETE)]


def all_event_files(output_dir: str | Path) -> list[Path]:
    """Return all event files of a run, including those of killed processes."""
    found = []
    for split in SPLITS:
        found += sorted(matching(Path(output_dir) / split, "events.out.tfevents.*"))
    return found


def read_metrics(output_dir: str | Path) -> list[dict[str, Any]]:
    """Return the records of a run's metrics, without a line cut short by a crash.

    Args:
        output_dir: Folder of the run; without metrics, there are no records.
    """
    lines = metrics_lines(output_dir)
    return [parse_json(line) for line in lines if step_of_line(line) < math.inf]


def split_records(output_dir: str | Path, split: str) -> list[dict[str, Any]]:
    """Return the records of one split, in their order; see `read_metrics`."""
    return [x for x in read_metrics(output_dir) if x.get("split") == split]


def by_step(
    records: Sequence[Mapping[str, Any]], split: str
) -> dict[int, Mapping[str, Any]]:
    """Return the last record of each step.

    Args:
        records: Records of any split.
        split: The split whose records to return.
    """
    return {record["step"]: record for record in records if record["split"] == split}


def training_seconds(records: Sequence[Mapping[str, Any]]) -> float:
    """Sum the times between lines of metrics, because training may have paused.

    The first updates of their shapes count with their own time, not with the rate of
    the others.

    Args:
        records: Records of any split.
    """
    seconds, before = 0.0, 0
    for step, record in sorted(by_step(records, TRAIN_SPLIT).items()):
        # No rate: all steps were the first ones of their shapes.
        rate = record.get("steps_per_second", math.inf)
        timed = step - before - record.get("compiled_updates", 0)
        seconds += timed / rate + record.get("compile_seconds", 0.0)
        before = step
    return seconds


def metrics_lines(output_dir: str | Path) -> list[str]:
    """Return all lines of a run's metrics, with their ends."""
    try:
        text = (Path(output_dir) / METRICS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return text.splitlines(keepends=True)


def step_of_line(line: str) -> float:
    """Return the step of a line; a line cut short by a crash is after all steps."""
    if not line.endswith("\n"):
        return math.inf
    try:
        return float(parse_json(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
