"""What stands in a folder of prepared data, in words and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_repro.data.manifest import Manifest, SplitCounts

_HEADINGS = ("split", "pairs read", "written", "source subwords", "target subwords")


def summary(manifest: Manifest, data_dir: str | Path) -> list[str]:
    """Gives lines with the vocabulary, a row for each split, and what was left out."""
    sizes = " and ".join(f"{size:,}" for size in _distinct_sizes(manifest))
    first = f"{manifest.problem} in {data_dir}: vocabulary of {sizes}"
    return [first, *_table(manifest)]


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
