"""Where a run's numbers go: `metrics.jsonl`, TensorBoard, and the terminal."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf
from tqdm import tqdm

from t2t_repro.files import atomic_write

logger = logging.getLogger(__name__)

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Writes numbers and sample texts of a run, step by step.

    Args:
        output_dir: Folder of the run; events go to its `train/` and `eval/`.
    """

    def __init__(self, output_dir: str | Path) -> None:
        self.output_dir = Path(output_dir)
        self._writers: dict[str, tf.summary.SummaryWriter] = {}

    def _writer(self, split: str) -> tf.summary.SummaryWriter:
        if split not in self._writers:
            folder = str(self.output_dir / split)
            self._writers[split] = tf.summary.create_file_writer(folder)
        return self._writers[split]

    def scalars(self, split: str, step: int, values: Mapping[str, float]) -> None:
        """Append one line to `metrics.jsonl` and the same numbers to TensorBoard.

        Args:
            split: "train" or "eval".
            step: Updates done.
            values: Name to number.
        """
        record = {"split": split, "step": step, "time": round(time.time(), 3)}
        # JSON has no infinity, the gradient norm of a step that overflowed.
        numbers = {k: v if math.isfinite(v) else None for k, v in values.items()}
        with open(self.output_dir / METRICS_FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(record | numbers) + "\n")
        with self._writer(split).as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writer(split).flush()

    def truncate_after(self, step: int) -> None:
        """Drop the lines of updates that a resumed run will do again.

        TensorBoard keeps its events; where steps overlap it shows both.

        Args:
            step: Of the checkpoint that training goes on from.
        """
        path = self.output_dir / METRICS_FILE
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if _step_of(line) <= step]
        if len(kept) < len(lines):
            atomic_write(path, "".join(kept))

    def text(self, split: str, step: int, name: str, markdown: str) -> None:
        """Write a text to TensorBoard."""
        with self._writer(split).as_default(step=step):
            tf.summary.text(name, markdown)
        self._writer(split).flush()


def _step_of(line: str) -> float:
    """Return the step of a line; a line cut short by a crash is after all steps."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf


class Progress:
    """A bar with the time left on a terminal; plain lines elsewhere.

    Args:
        first_step: Updates done before.
        last_step: Updates at the end.
    """

    def __init__(self, first_step: int, last_step: int) -> None:
        self._bar = tqdm(
            total=last_step,
            initial=first_step,
            unit="step",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
        )
        self._first_step = first_step
        self._last_step = last_step
        self._start = time.monotonic()

    def advance(self) -> None:
        """Count one update."""
        self._bar.update()

    def line(self, step: int, message: str) -> None:
        """Show a message, with step and time left where there is no bar."""
        if self._bar.disable:
            logger.info(
                "step %d/%d  %s  time left %s",
                step,
                self._last_step,
                message,
                self._time_left(step),
            )
        else:
            self._bar.write(f"step {step}  {message}", file=sys.stderr)

    def _time_left(self, step: int) -> str:
        done = max(step - self._first_step, 1)
        seconds = (time.monotonic() - self._start) / done * (self._last_step - step)
        return tqdm.format_interval(seconds)

    def close(self) -> None:
        """Finish the bar."""
        self._bar.close()
