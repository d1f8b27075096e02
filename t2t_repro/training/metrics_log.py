"""Write the metrics of a run to `metrics.jsonl` and to TensorBoard."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
from tensorboard.plugins.custom_scalar import summary as custom_scalar

from t2t_repro.files import atomic_write, open_no_link
from t2t_repro.training.event_files import remove_incomplete, without_later_events
from t2t_repro.training.metrics_file import (
    EVAL_SPLIT,
    METRICS_FILE,
    event_files,
    read_lines,
    split_records,
    step_of,
)
from t2t_repro.training.scalar_tags import custom_layout, scalar_tag

# Takes the split, the step and the metrics of a line after it was written.
Listener = Callable[[str, int, Mapping[str, float]], object]


class MetricsLog:
    """Writer of the metrics and sample texts of a run.

    Args:
        output_dir: Folder of the run. Each split has its TensorBoard events in a
            folder inside, such as `train/`.

    Attributes:
        listeners: Called with every line; see `register_monitor`.
    """

    def __init__(self, output_dir: str | Path) -> None:
        self.output_dir = Path(output_dir)
        self._writers: dict[str, tf.summary.SummaryWriter] = {}
        self.listeners: list[Listener] = []

    def _writer(self, split: str) -> tf.summary.SummaryWriter:
        if split not in self._writers:
            folder = str(self.output_dir / split)
            self._writers[split] = tf.summary.create_file_writer(folder)
            _write_layout(self._writers[split], split)
        return self._writers[split]

    @contextmanager
    def events(self, split: str, step: int) -> Iterator[None]:
        """Send the calls of `tf.summary` in a `with` block to the events of a split.

        Args:
            split: Name of the folder of events, such as "eval".
            step: Number of completed updates.
        """
        writer = self._writer(split)
        with writer.as_default(step=step):
            yield
        writer.flush()

    def scalars(self, split: str, step: int, values: Mapping[str, float]) -> None:
        """Append one line to `metrics.jsonl` and the same numbers to TensorBoard.

        TensorBoard shows them in groups, "nll" as "loss/nll"; see `scalar_tag`. The
        line comes last, so where it exists, TensorBoard has its numbers.

        Args:
            split: "train", "eval", or the name of another folder of events.
            step: Number of completed updates.
            values: Numbers by name.

        Raises:
            OSError: If the line cannot be written; no part of it remains in the file.
        """
        record = {"split": split, "step": step, "time": round(time.time(), 3)}
        # JSON has no infinity, the gradient norm of an overflow.
        numbers = {k: v if math.isfinite(v) else None for k, v in values.items()}
        with self.events(split, step):
            for name, value in values.items():
                tf.summary.scalar(scalar_tag(name), value)
        _append(self.output_dir / METRICS_FILE, json.dumps(record | numbers) + "\n")
        for listener in self.listeners:
            listener(split, step, values)

    def truncate_after(self, step: int) -> None:
        """Drop the lines and the events of updates that a resumed run repeats.

        Events of an evaluation without a line are dropped, too: it is made again.

        Args:
            step: Step of the checkpoint that training resumes from.
        """
        path = self.output_dir / METRICS_FILE
        lines = read_lines(self.output_dir)
        kept = [line for line in lines if step_of(line) <= step]
        if len(kept) < len(lines):
            atomic_write(path, "".join(kept))
        self._truncate_events(step)

    def _truncate_events(self, step: int) -> None:
        is_evaluated = self.has_line(EVAL_SPLIT, step)
        remove_incomplete(self.output_dir)
        for path in event_files(self.output_dir):
            repeats = path.parent.name == EVAL_SPLIT and not is_evaluated
            last = max(step - 1, 0) if repeats else step
            kept = without_later_events(path, last)
            if kept is not None:
                self._close()
                atomic_write(path, kept)

    def _close(self) -> None:
        """Close the files of events; later events go to new ones."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def has_line(self, split: str, step: int) -> bool:
        """Return whether `metrics.jsonl` has a line of this split and step."""
        records = split_records(self.output_dir, split)
        return any(record["step"] == step for record in records)

    def values(self, split: str, name: str) -> dict[int, float]:
        """Return a metric of a split by step, from `metrics.jsonl`."""
        return {
            record["step"]: record[name]
            for record in split_records(self.output_dir, split)
            if record.get(name) is not None
        }

    def text(self, split: str, step: int, name: str, markdown: str) -> None:
        """Write a text in Markdown to TensorBoard."""
        with self.events(split, step):
            tf.summary.text(name, markdown)


def _write_layout(writer: tf.summary.SummaryWriter, split: str) -> None:
    """Write the charts of the tab "Custom Scalars" for a split, if it has any."""
    layout = custom_layout(split)
    if layout is not None:
        summary = custom_scalar.pb(layout).SerializeToString()
        with writer.as_default():
            tf.summary.experimental.write_raw_pb(summary, step=0)


def _append(path: Path, line: str) -> None:
    """Append a complete line to a file, or nothing if there is no space."""
    size = path.stat().st_size if path.exists() else 0
    descriptor = open_no_link(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        os.truncate(path, size)
        error.filename = error.filename or str(path)
        raise
