"""Measure `t2t datagen` against the size of the corpus and the number of workers.

The corpus repeats a given text; a number at the end of each line makes the pairs
distinct. Each measurement runs in its own process, with all phases: import, reading,
vocabulary, encoding, shuffling. Memory is the largest sum of the resident sets of the
process and its workers, which counts shared pages several times. The projections follow
the line through the two largest sizes.

    python benchmarks/preparation.py --source train.en --target train.de \
        --sizes 10000,100000,1000000,5000000 --workers 1,2 --vocab_size 32000 \
        --folder /tmp/preparation --json docs/preparation.json
    python benchmarks/preparation.py --json docs/preparation.json --page docs/data.md

Needs psutil.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from t2t_repro.data.vocabulary import MAX_TRAINING_PAIRS

PROJECTED = {"WMT14 en-de": 4_500_000, "WMT14 en-fr": 36_000_000}
# The lines of the log that begin a phase
PHASES = {
    "reading the text": "reading",
    "learning": "vocabulary",
    "encoding": "encoding",
    "shuffling": "shuffling",
}
MARKER = "<!-- benchmarks/preparation.py -->"
_SECONDS_BETWEEN_SAMPLES = 0.2
# Distributes the second number, so that neighbouring lines are unlike.
_STRIDE = 7919

Row = dict[str, Any]


def write_corpus(text: Path, pairs: int, path: Path) -> None:
    """Write `pairs` distinct lines, made of the lines of a text."""
    lines = text.read_text(encoding="utf-8").rstrip("\n").split("\n")
    with path.open("w", encoding="utf-8") as file:
        for number in range(pairs):
            turn, index = divmod(number, len(lines))
            mark = f" {turn} {index * _STRIDE % len(lines)}" if turn else ""
            file.write(f"{lines[index]}{mark}\n")


def measure(command: list[str]) -> Row:
    """Run a command, and return its seconds, also by phase and of CPU, and its memory.

    Raises:
        SystemExit: If the command fails.
    """
    cpu, start = _cpu_seconds(), time.monotonic()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    starts: dict[str, float] = {}
    log = threading.Thread(target=_read_log, args=(process.stderr, starts))
    log.start()
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident_bytes(process))
        time.sleep(_SECONDS_BETWEEN_SAMPLES)
    end = time.monotonic()
    log.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    begins = [start, *starts.values(), end]
    names = ["start", *starts]
    seconds = {
        name: round(later - begin, 2)
        for name, (begin, later) in zip(names, itertools.pairwise(begins), strict=True)
    }
    return {
        "seconds": round(end - start, 2),
        "cpu_seconds": round(_cpu_seconds() - cpu, 2),
        "phases": seconds,
        "peak_bytes": peak,
    }


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that this one has waited for."""
    times = os.times()
    return times.children_user + times.children_system


def _read_log(lines: Iterator[bytes], starts: dict[str, float]) -> None:
    for line in lines:
        for text, phase in PHASES.items():
            if text in line.decode("utf-8", "replace"):
                starts.setdefault(phase, time.monotonic())


def _resident_bytes(process: psutil.Popen) -> int:
    total = 0
    try:
        for one in [process, *process.children(recursive=True)]:
            total += one.memory_info().rss
    except psutil.Error:  # a process ended in the meantime
        pass
    return total


def measure_all(args: argparse.Namespace) -> dict[str, Any]:
    """Measure every size with every number of workers."""
    rows: list[Row] = []
    args.folder.mkdir(parents=True, exist_ok=True)
    for pairs in args.sizes:
        files = {side: args.folder / f"text.{side}" for side in ("source", "target")}
        for side, path in files.items():
            write_corpus(getattr(args, side), pairs, path)
        size = sum(path.stat().st_size for path in files.values())
        for workers in args.workers:
            data_dir = args.folder / "data"
            shutil.rmtree(data_dir, ignore_errors=True)
            command = [sys.executable, "-m", "t2t_repro.cli.main", "datagen"]
            command += ["--problem", "text_pairs", "--data_dir", str(data_dir)]
            command += [f"--train_{side}={path}" for side, path in files.items()]
            command += [f"--num_workers={workers}", f"--vocab_size={args.vocab_size}"]
            row = {"pairs": pairs, "bytes": size, "workers": workers}
            row |= measure(command)
            rows.append(row)
            print(table_row(row), flush=True)
    shutil.rmtree(args.folder)
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "vocab_size": args.vocab_size,
        "rows": rows,
        "projections": projections(rows),
    }


def projections(rows: list[Row]) -> list[Row]:
    """Return seconds and memory for the sizes of WMT14.

    Memory grows with the vocabulary's sample, and more slowly once the sample is full,
    so the line of the memory needs two sizes above that of the sample.
    """
    projected = []
    for workers in sorted({row["workers"] for row in rows}):
        own = [row for row in rows if row["workers"] == workers]
        long = [row for row in own if row["pairs"] > MAX_TRAINING_PAIRS]
        for name, pairs in PROJECTED.items():
            seconds = _line(own[-2:], "seconds", pairs)
            peak = _line(long[-2:], "peak_bytes", pairs)
            row = {"corpus": name, "workers": workers}
            projected.append({**row, "seconds": seconds, "peak_bytes": peak})
    return projected


def _line(rows: list[Row], key: str, pairs: int) -> int | None:
    """Return the value at a size on the line through two rows, None without them."""
    if len(rows) < 2:
        return None
    first, second = rows
    slope = (second[key] - first[key]) / (second["pairs"] - first["pairs"])
    return round(second[key] + max(slope, 0) * (pairs - second["pairs"]))


def table_row(row: Row) -> str:
    """Return a row for `table`."""
    phases = row["phases"]
    encoding = row["pairs"] / phases["encoding"]
    seconds = " | ".join(f"{phases.get(name, 0):,.0f}" for name in PHASES.values())
    return (
        f"| {row['pairs']:,} | {row['workers']} | {row['seconds']:,.0f} "
        f"| {row['cpu_seconds']:,.0f} | {seconds} "
        f"| {row['pairs'] / row['seconds']:,.0f} | {encoding:,.0f} "
        f"| {row['peak_bytes'] / 1e6:,.0f} |"
    )


def table(results: dict[str, Any]) -> str:
    """Return the results as tables in Markdown."""
    names = ["pairs", "workers", "seconds", "CPU seconds", *PHASES.values()]
    names += ["pairs per second", "of these, encoding", "peak MB"]
    lines = [f"| {' | '.join(names)} |", "|" + "---:|" * len(names)]
    lines += map(table_row, results["rows"])
    lines += [
        "",
        "| projection | workers | minutes | peak MB |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| {row['corpus']} | {row['workers']} | {_scaled(row['seconds'], 60)} "
        f"| {_scaled(row['peak_bytes'], 1e6)} |"
        for row in results["projections"]
    ]
    return "\n".join(lines)


def _scaled(value: int | None, unit: float) -> str:
    return "not measured" if value is None else f"{value / unit:,.0f}"


def write_page(results: dict[str, Any], page: Path) -> None:
    """Replace what is between the two markers of a page by the tables."""
    before, _, rest = page.read_text(encoding="utf-8").partition(MARKER)
    _, _, after = rest.partition(MARKER)
    measured = f"Measured on {results['machine']}.\n\n{table(results)}"
    parts = (before, f"\n{measured}\n", after)
    page.write_text(MARKER.join(parts), encoding="utf-8")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, help="text; without it, show --json")
    parser.add_argument("--target", type=Path, help="its translation, line by line")
    parser.add_argument("--sizes", type=_numbers, default=[10_000, 100_000])
    parser.add_argument("--workers", type=_numbers, default=[1, 2])
    parser.add_argument("--vocab_size", type=int, default=32_000)
    parser.add_argument("--folder", type=Path, help="for the corpora; it is removed")
    parser.add_argument("--json", type=Path, required=True, help="file of the results")
    parser.add_argument("--page", type=Path, help="page in which to put the tables")
    args = parser.parse_args()
    if args.source:
        if not (args.target and args.folder):
            parser.error("--source needs --target and --folder")
        text = json.dumps(measure_all(args), indent=1)
        args.json.write_text(f"{text}\n", encoding="utf-8")
    results = json.loads(args.json.read_text(encoding="utf-8"))
    print(table(results))
    if args.page:
        write_page(results, args.page)


if __name__ == "__main__":
    main()
