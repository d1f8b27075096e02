"""Summarize prepared data as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_repro.data.manifest import Manifest, SplitCounts
    from t2t_repro.data.prepared import PreparedData

_HEADINGS = ("split", "pairs read", "written", "source subwords", "target subwords")


def summary_lines(data: PreparedData) -> list[str]:
    """Return lines with the vocabulary, a row per split, and the pairs left out."""
    sizes = " and ".join(f"{size:,}" for size in _distinct_sizes(data.manifest))
    first = f"{data.manifest.problem} in {data.folder}: vocabulary of {sizes}"
    lines = [first, *_table(data.manifest)]
    for split, counts in data.manifest.splits.items():
        lines += _remarks(split, counts)
    return lines


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
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _remarks(split: str, counts: SplitCounts) -> list[str]:
    remarks = [
        f"{split}: left out {count:,} pair(s): {reason.replace('_', ' ')}"
        for reason, count in counts.dropped.items()
    ]
    if counts.pairs_written != counts.pairs_kept:
        remarks.append(
            f"{split}: written {counts.pairs_written:,} copies of "
            f"{counts.pairs_kept:,} pair(s)"
        )
    if counts.also_held_out:
        remarks.append(
            f"{split}: {counts.also_held_out:,} pair(s) are also in the dev or test "
            "text; scores on that text will be too good"
        )
    return remarks
