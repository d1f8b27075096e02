"""Kill a training run many times, and compare it with an undisturbed one.

Run it by hand, from the root of the repository; it takes about a quarter of an hour:

    python -m benchmarks.soak_kills --kills 50 --seed 1

The run is killed (SIGKILL) at random moments after its start: while TensorFlow is
imported, data is prepared, the model is traced, a checkpoint is restored or written,
batches are trained on, dev text is evaluated, or weights are averaged. The same command
follows every time. At the end, all tensors of all checkpoints, the metrics and
TensorBoard's points must be those of the undisturbed run, bit for bit.

`--fork` starts the command as a fork of this process, in which TensorFlow is already
imported. On a busy machine that is several times as fast.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro.cli import main as cli_main
from tests.support.trained_system import train_arguments, write_text

# Checkpoints between two lines of metrics, so that their windows are interrupted.
SCHEDULE = (
    *("--log_step_count_steps", "15", "--save_checkpoints_steps", "20"),
    *("--local_eval_frequency", "100", "--eval_sentences", "8"),
    *("--attention_samples", "1", "--average_last", "5", "--no_final_score"),
    *("--max_skipped_updates", "5", "--spike_factor", "10"),
)
SKIPPED_TAGS = ("custom_scalars__config__", "_hparams_")
PATIENCE = 1800.0  # seconds until an undisturbed process must have ended


def main() -> int:
    """Run both training runs, print what was killed where, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train_steps", type=int, default=1500)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--fork", action="store_true")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="soak_"))
    folder.mkdir(parents=True, exist_ok=True)
    text = write_text(folder)
    commands, seconds = {}, {}
    for name in ("undisturbed", "killed"):
        flags = train_arguments(text, folder / f"{name}_data", folder / name)
        steps = ["--train_steps", str(args.train_steps), *SCHEDULE]
        commands[name] = Command(["train", *flags, *steps], args.fork, folder / "log")
    for part in ("whole", "finished"):  # the second only starts and ends
        start = time.monotonic()
        commands["undisturbed"].run_to_its_end()
        seconds[part] = time.monotonic() - start
    print({part: round(value, 1) for part, value in seconds.items()}, flush=True)
    places, starts = kill_again_and_again(
        commands["killed"], folder / "killed", args.kills, args.seed, seconds
    )
    print(f"{args.kills} kills, {starts} starts; found afterwards: {dict(places)}")
    found = list(differences(folder / "undisturbed", folder / "killed"))
    print("\n".join(found) or "no difference")
    return 1 if found else 0


class Command:
    """A command of `t2t` to run in its own process.

    Args:
        arguments: The arguments of `t2t`.
        is_forked: Whether the process is a fork of this one, or a new program.
        log: File that output is appended to.
    """

    def __init__(self, arguments: list[str], is_forked: bool, log: Path) -> None:
        self._arguments, self._is_forked, self._log = arguments, is_forked, log

    def run_to_its_end(self) -> None:
        """Run the command, and stop the program if it fails."""
        if self.run(PATIENCE) != 0:
            raise SystemExit(f"the command failed: see {self._log}")

    def run(self, seconds: float) -> int | None:
        """Return the exit code, or None if it was killed after these seconds."""
        process = multiprocessing.get_context("fork").Process(target=self._run)
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            return None
        return process.exitcode

    def _run(self) -> None:
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        if self._is_forked:
            os._exit(cli_main.main(self._arguments))
        program = [sys.executable, "-m", cli_main.__name__, *self._arguments]
        os.execv(sys.executable, program)


def kill_again_and_again(
    command: Command,
    run: Path,
    kills: int,
    seed: int,
    seconds: dict[str, float],
) -> tuple[collections.Counter[str], int]:
    """Kill a command until it was killed often enough, then let it finish.

    Returns:
        How often which remains were found after a kill, and the number of starts.
    """
    generator = random.Random(seed)
    longest, before = seconds["finished"] + 0.3 * seconds["whole"], ""
    places: collections.Counter[str] = collections.Counter()
    killed = starts = 0
    while killed < kills:
        starts += 1
        delay = generator.uniform(0.2, longest)
        code = command.run(delay)
        if code is None:
            killed += 1
            places.update(remains(run))
            now = position(run)
            print(f"kill {killed} after {delay:.1f} s: {now}", flush=True)
            # Most processes should live long enough to make some progress.
            longest *= 1.3 if now == before else 0.9
            before = now
            continue
        if code != 0:
            raise SystemExit(f"start {starts} ended with {code}")
        longest *= 0.7
        # Complete too early: the rest of the kills fall on the end of the run.
        for file in sorted((run / "averaged").glob("*")):
            file.unlink()
    command.run_to_its_end()
    return places, starts + 1


def remains(run: Path) -> Iterator[str]:
    """Yield the kinds of half-written files that a kill left."""
    if not run.exists():
        yield "no folder yet"
        return
    names = [path.name for path in run.iterdir()]
    if any(name.endswith("_temp") or ".tempstate" in name for name in names):
        yield "half a checkpoint"
    for name in ("best", "averaged"):
        if f"{name}.incomplete" in names or f"{name}.replaced" in names:
            yield f"half of {name}"
    if not any(name.startswith("model.ckpt-") for name in names):
        yield "no checkpoint yet"
    metrics = run / "metrics.jsonl"
    if metrics.exists() and not metrics.read_bytes().endswith(b"\n"):
        yield "half a line of metrics"


def position(run: Path) -> str:
    """Return the last line of metrics and the newest checkpoint of a run."""
    metrics = run / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    steps = sorted(int(p.stem.rpartition("-")[2]) for p in run.glob("model*.index"))
    line = json.loads(lines[-1]) if lines and lines[-1].endswith("}") else {}
    return f"{line.get('split')} {line.get('step')}, checkpoint {(steps or [0])[-1]}"


def differences(expected: Path, found: Path) -> Iterator[str]:
    """Yield what differs between two runs."""
    for folder in (".", "best", "averaged"):
        yield from checkpoint_differences(expected / folder, found / folder)
    ours, theirs = metrics_of(expected), metrics_of(found)
    print(f"{len(ours)} lines of metrics")
    if ours != theirs:
        yield f"metrics differ: {len(ours)} lines, {len(theirs)} lines"
    ours, theirs = points_of(expected), points_of(found)
    print(f"{len(ours)} points of TensorBoard")
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            counts = len(ours.get(key, ())), len(theirs.get(key, ()))
            yield f"events differ: {key}, {counts[0]} and {counts[1]} value(s)"
    left = [p.name for p in found.iterdir() if "incomplete" in p.name]
    files = [{path.name for path in run.iterdir()} for run in (expected, found)]
    if left or files[0] != files[1]:
        yield "the folders hold other files"


def checkpoint_differences(expected: Path, found: Path) -> Iterator[str]:
    """Yield the tensors of two folders' checkpoints that are not the same bits."""
    names = [sorted(p.stem for p in f.glob("*.index")) for f in (expected, found)]
    if names[0] != names[1]:
        yield f"{found}: checkpoints {names[1]}, expected {names[0]}"
        return
    count = 0
    for name in names[0]:
        readers = [tf.train.load_checkpoint(str(f / name)) for f in (expected, found)]
        keys = [sorted(r.get_variable_to_shape_map()) for r in readers]
        if keys[0] != keys[1]:
            yield f"{found / name}: other tensors"
            continue
        for key in keys[0]:
            if key.startswith("_CHECKPOINTABLE"):
                continue
            values = [r.get_tensor(key) for r in readers]
            if key.startswith("metrics/window"):
                # The seconds differ, of course.
                values = [json.loads(v)["steps"] for v in values]
            count += 1
            if not np.array_equal(*values):
                yield f"{found / name}: {key} differs"
    print(f"{expected}: {len(names[0])} checkpoint(s), {count} tensors compared")


def metrics_of(run: Path) -> list[dict[str, float]]:
    """Return the lines of a run's metrics without times and rates."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [
        {k: v for k, v in line.items() if k != "time" and not _is_time(k)}
        for line in lines
    ]


def _is_time(name: str) -> bool:
    return "per_second" in name or "compile" in name


def points_of(run: Path) -> dict[tuple[str, str, int], list[bytes]]:
    """Return TensorBoard's values by split, tag and step, without rates."""
    points: dict[tuple[str, str, int], list[bytes]] = {}
    for path in sorted(run.glob("*/events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag.startswith(SKIPPED_TAGS) or _is_time(value.tag):
                    continue
                key = path.parent.name, value.tag, event.step
                points.setdefault(key, []).append(value.tensor.SerializeToString())
    return points


if __name__ == "__main__":
    sys.exit(main())
