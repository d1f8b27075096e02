"""`t2t datagen`: a problem's text to shards of ids, a vocabulary and a manifest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from t2t_repro.cli.data_arguments import (
    add_data_arguments,
    problem_from_arguments,
    required_data_dir,
)

if TYPE_CHECKING:
    from t2t_repro.data.manifest import Manifest, SplitCounts

_HEADINGS = ("split", "pairs read", "written", "source subwords", "target subwords")


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Registers the command's flags."""
    add_data_arguments(subparsers.add_parser("datagen", description=__doc__))


def run(args: argparse.Namespace) -> int:
    """Prepares the data, or finds it prepared, and prints its counts."""
    problem, settings = problem_from_arguments(args)
    data_dir = required_data_dir(args)
    from t2t_repro.data.prepare import prepare

    manifest = prepare(problem, data_dir, args.tmp_dir, settings)
    sizes = " and ".join(f"{size:,}" for size in _distinct_sizes(manifest))
    print(f"{manifest.problem} in {data_dir}: vocabulary of {sizes}")
    print("\n".join(_table(manifest)))
    return 0


def _distinct_sizes(manifest: Manifest) -> list[int]:
    sizes = manifest.vocab_sizes
    if manifest.tokenizers["inputs"] == manifest.tokenizers["targets"]:
        return [sizes["inputs"]]
    return [sizes["inputs"], sizes["targets"]]


def _table(manifest: Manifest) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for split, counts in manifest.splits.items():
        numbers = (
            counts.pairs_read,
            counts.pairs_written,
            counts.source_subwords,
            counts.target_subwords,
        )
        rows.append((split, *(f"{number:,}" for number in numbers)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    for split, counts in manifest.splits.items():
        lines += _remarks(split, counts)
    return lines


def _remarks(split: str, counts: SplitCounts) -> list[str]:
    remarks = [
        f"{split}: left out {count:,} pair(s): {reason.replace('_', ' ')}"
        for reason, count in counts.dropped.items()
    ]
    if counts.also_held_out:
        remarks.append(
            f"{split}: {counts.also_held_out:,} pair(s) stand in the dev or test text "
            f"too; scores on it will flatter"
        )
    return remarks
