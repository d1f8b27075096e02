"""Average the metrics of a run, and write them to `metrics.jsonl` and to TensorBoard.

`metrics.jsonl` keeps the short names. TensorBoard makes a section of every group.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar

from t2t_repro.data.records import (
    FOOTER_BYTES,
    HEADER_BYTES,
    DamagedRecordError,
    record_length,
)
from t2t_repro.files import INCOMPLETE, atomic_write, open_no_link
from t2t_repro.training.metrics_file import (
    BRANCHES_SPLIT,
    EVAL_SPLIT,
    METRICS_FILE,
    TRAIN_SPLIT,
    all_event_files,
    event_files,
    metrics_lines,
    split_records,
    step_of_line,
)
from t2t_repro.training.optimizer import has_overflowed

# Takes the split, the step and the metrics of a line after it was written.
Monitor = Callable[[str, int, Mapping[str, float]], object]


class MetricsLog:
    """Writer of the metrics and sample texts of a run.

    Args:
        output_dir: Folder of the run. Each split has its TensorBoard events in a
            folder inside, such as `train/`.

    Attributes:
        monitors: Called with every line, also those of a package's
            `register_monitor`.
    """

    def __init__(self, output_dir: str | Path) -> None:
        self.output_dir = Path(output_dir)
        self._writers: dict[str, tf.summary.SummaryWriter] = {}
        self.monitors: list[Monitor] = []

    def _writer(self, split: str) -> tf.summary.SummaryWriter:
        if split not in self._writers:
            folder = str(self.output_dir / split)
            self._writers[split] = tf.summary.create_file_writer(folder)
            _write_layout(self._writers[split], split)
        return self._writers[split]

    @contextmanager
    def events(self, split: str, step: int) -> Generator[None]:
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
        for monitor in self.monitors:
            monitor(split, step, values)

    def truncate_after(self, step: int) -> None:
        """Drop the lines and the events of updates that a resumed run repeats.

        Events of an evaluation without a line are dropped, too, because it is repeated.

        Args:
            step: Step of the checkpoint that training resumes from.
        """
        path = self.output_dir / METRICS_FILE
        lines = metrics_lines(self.output_dir)
        kept = [line for line in lines if step_of_line(line) <= step]
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


# Takes the step, returns metrics, and may write more to the log.
Evaluator = Callable[[int, MetricsLog], dict[str, float]]


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


def remove_incomplete(output_dir: Path) -> None:
    """Remove the incomplete files of a process that was killed while rewriting one."""
    for path in all_event_files(output_dir):
        if path.name.endswith(INCOMPLETE):
            path.unlink(missing_ok=True)


def without_later_events(path: Path, step: int) -> bytes | None:
    """Return the content of an event file without later events, or None if it has none.

    The end of a record that a killed process left incomplete is dropped as well.

    Args:
        path: Path of the file.
        step: Events with a larger step are dropped.
    """
    content = path.read_bytes()
    kept = b"".join(_records_until(content, step))
    return None if len(kept) == len(content) else kept


def _records_until(content: bytes, step: int) -> Iterator[bytes]:
    """Yield the complete records of events up to a step, with their checksums."""
    start = 0
    while start + HEADER_BYTES <= len(content):
        data = start + HEADER_BYTES
        try:
            length = record_length(content[start:data])
            end = data + length + FOOTER_BYTES
            if end > len(content):
                return
            event = event_pb2.Event.FromString(content[data : data + length])
        except (DecodeError, DamagedRecordError):
            return  # TensorBoard reads no further than a damaged record, either.
        if event.step <= step:
            yield content[start:end]
        start = end


_GROUPS = {
    "loss": ("loss", "nll", "perplexity"),
    "optimization": (
        "learning_rate",
        "branch_learning_rate",
        "gradient_norm",
        "skipped_updates",
        "loss_scale",
        "overflowed_updates",
    ),
    "progress": ("epoch",),
    "throughput": (
        "source_tokens_per_second",
        "target_tokens_per_second",
        "target_tokens_per_step",
        "steps_per_second",
        "padding_share",
        "compile_seconds",
        "compiled_updates",
    ),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}
# All others are scores: "token_accuracy", and the metric of the problem.
# TensorBoard sorts by name, and the scores come before the loss.
_SCORES = "evaluation"
# Kappa and alpha have names with slashes. This group is the last in the alphabet.
_WEIGHTS = "weights"

# Charts in the order of the tab "Custom Scalars": a title and the pattern of its tags.
_OVERVIEW = (
    ("Score of the dev translations", "evaluation/(?!token_accuracy$)"),
    ("Loss in nats per target token, without smoothing", "loss/nll$"),
    ("Share of dev tokens predicted correctly", "evaluation/token_accuracy$"),
    ("Learning rate", "optimization/(branch_)?learning_rate$"),
    ("Target tokens per second", "throughput/target_tokens_per_second$"),
    ("Norm of the gradient", "optimization/gradient_norm$"),
)
_BRANCHES = (
    ("kappa of the encoder", "weights/encoder/.*/kappa/"),
    ("alpha of the encoder", "weights/encoder/.*/alpha/"),
    ("kappa of the decoder", "weights/decoder/.*/kappa/"),
    ("alpha of the decoder", "weights/decoder/.*/alpha/"),
)


def scalar_tag(name: str) -> str:
    """Return the tag of a metric in TensorBoard, such as "loss/nll".

    Args:
        name: Name of the metric in `metrics.jsonl`.
    """
    group = _WEIGHTS if "/" in name else _GROUP_OF.get(name, _SCORES)
    return f"{group}/{name}"


def custom_layout(split: str) -> layout_pb2.Layout | None:
    """Return the charts that a split adds to the tab "Custom Scalars", or None.

    TensorBoard merges the layouts of all runs in the order of their names, and shows
    equal charts once. The layout of branches repeats the overview, which comes first.

    Args:
        split: Folder of events. "train" adds the charts of every training run.
    """
    overview = _category("Overview", _OVERVIEW)
    if split == TRAIN_SPLIT:
        return layout_pb2.Layout(category=[overview])
    if split == BRANCHES_SPLIT:
        branches = _category("Weighted Transformer", _BRANCHES)
        return layout_pb2.Layout(category=[overview, branches])
    return None


def _category(title: str, patterns: Iterable[tuple[str, str]]) -> layout_pb2.Category:
    charts = []
    for chart, pattern in patterns:
        multiline = layout_pb2.MultilineChartContent(tag=[pattern])
        charts.append(layout_pb2.Chart(title=chart, multiline=multiline))
    return layout_pb2.Category(title=title, chart=charts)


_COUNTS = ("source_tokens", "target_tokens", "positions")
# Ends of the names of metrics whose last value counts.
_LAST = ("learning_rate", "loss_scale")


class MetricsWindow:
    """Metrics of the steps since the last summary.

    Values stay on the device until they are summarized or saved, so that a step does
    not wait for the previous one.

    Args:
        state: A saved state of another window, which this one continues; "" = none.
    """

    def __init__(self, state: str = "") -> None:
        values = json.loads(state) if state else {"steps": [], "seconds": 0.0}
        self._steps: list[dict[str, tf.Tensor | float]] = values["steps"]
        self._start = time.monotonic() - values["seconds"]

    def state(self) -> str:
        """Return the steps and the seconds so far as JSON, for a checkpoint."""
        self._steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        seconds = time.monotonic() - self._start
        return json.dumps({"steps": self._steps, "seconds": seconds})

    def add(
        self, results: dict[str, tf.Tensor], compile_seconds: float | None = None
    ) -> None:
        """Add the metrics of a step, as `make_train_step` returns them.

        Args:
            results: Metrics of the step.
            compile_seconds: Duration of the step if it was the first one of its shape,
                which includes the compilation. Rates leave such a step out.
        """
        if compile_seconds is None:
            self._steps.append(results)
            return
        self._start += compile_seconds
        self._steps.append({**results, "compile_seconds": compile_seconds})

    def pause(self, action: Callable[[], None]) -> None:
        """Call a function without counting its time."""
        start = time.monotonic()
        action()
        self._start += time.monotonic() - start

    def summarize(self) -> dict[str, float]:
        """Return means and rates, and begin a new window.

        Returns:
            "loss" and "nll" in nats, averaged over target tokens; "gradient_norm" and
            "target_tokens_per_step", averaged over steps; the last "learning_rate" and,
            if the steps have them, "branch_learning_rate" and "loss_scale"; rates, see
            `_rates`; and "padding_share", a fraction of all positions. The means of
            "loss", "nll" and "gradient_norm" leave out skipped updates, whose number is
            "skipped_updates" if there are any; they are NaN if all were skipped. The
            mean of "gradient_norm" also leaves out "overflowed_updates", for which the
            loss scale was too high.
        """
        steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        seconds = max(time.monotonic() - self._start, 1e-9)
        self._steps, self._start = [], time.monotonic()
        made = [s for s in steps if not s.get("skipped")]
        finite = [s for s in made if not has_overflowed(s)]
        source, target, positions = (_total(name, steps) for name in _COUNTS)
        counts = {
            "skipped_updates": len(steps) - len(made),
            "overflowed_updates": len(made) - len(finite),
        }
        return {
            "loss": _token_mean("loss", made),
            "nll": _token_mean("nll", made),
            "gradient_norm": _ratio(_total("gradient_norm", finite), len(finite)),
            **{k: v for k, v in steps[-1].items() if k.endswith(_LAST)},
            **_rates(steps, seconds),
            "target_tokens_per_step": target / len(steps),
            "padding_share": 1.0 - (source + target) / positions,
            **{name: count for name, count in counts.items() if count},
        }


def _rates(steps: list[dict[str, float]], seconds: float) -> dict[str, float]:
    """Return tokens and steps per second, and the time and number of first steps.

    Args:
        steps: Metrics of the steps.
        seconds: Duration of the steps that were not the first of their shape.

    Returns:
        "source_tokens_per_second", "target_tokens_per_second" and "steps_per_second" of
        these steps, if there are any; and "compile_seconds" and "compiled_updates", the
        time and number of the others, if there are any.
    """
    timed = [s for s in steps if "compile_seconds" not in s]
    rates = {}
    if timed:
        rates = {
            "source_tokens_per_second": _total("source_tokens", timed) / seconds,
            "target_tokens_per_second": _total("target_tokens", timed) / seconds,
            "steps_per_second": len(timed) / seconds,
        }
    if len(timed) < len(steps):
        first = [s for s in steps if "compile_seconds" in s]
        rates["compile_seconds"] = _total("compile_seconds", first)
        rates["compiled_updates"] = len(first)
    return rates


def _total(name: str, steps: list[dict[str, float]]) -> float:
    return math.fsum(s[name] for s in steps)


def _token_mean(name: str, steps: list[dict[str, float]]) -> float:
    """Weight each step by its target tokens."""
    total = math.fsum(s[name] * s["target_tokens"] for s in steps)
    return _ratio(total, _total("target_tokens", steps))


def _ratio(total: float, count: float) -> float:
    return total / count if count else math.nan
