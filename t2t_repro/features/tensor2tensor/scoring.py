"""`t2t-decoder --score_file`: one file of pairs; `t2t score` reads two files.

Source: tensor2tensor `bin/t2t_decoder.py: score_file`. It strips both sides of a pair,
and writes the loss per target token, without label smoothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from t2t_repro.cli.streams import STANDARD_STREAM
from t2t_repro.data.request import PairFiles, read_pairs
from t2t_repro.features.tensor2tensor.translation import Translation
from t2t_repro.files import atomic_write

# tensor2tensor's names for the sides of a set that it decodes.
_SOURCES, _TARGETS = ".inputs", ".targets"


def describe(result: Translation, given: Mapping[str, str]) -> None:
    """Name the files of both sides, and say how the scores differ."""
    scores = given.get("decode_to_file", "")
    beside = given["score_file"] if scores in ("", STANDARD_STREAM) else scores
    result.flags["source"] = beside + _SOURCES
    result.flags["target"] = beside + _TARGETS
    result.notes += [
        f"--score_file={given['score_file']}: its columns are in {beside}{_SOURCES} "
        f"and {beside}{_TARGETS}, as `cut -f1` and `cut -f2` write them",
        "`t2t score` writes log-probability, score, number of tokens; tensor2tensor's "
        "loss is -log-probability / tokens",
    ]


def write_sides(pairs: str, source: str, target: str) -> None:
    """Write the two sides of a file of pairs into files of their own.

    Args:
        pairs: File with one source, TAB and target per line.
        source: File for the sources.
        target: File for the targets.

    Raises:
        UserError: If the file cannot be read, or a line has not exactly one TAB.
    """
    columns = list(read_pairs(PairFiles(Path(pairs))))
    for side, path in enumerate((source, target)):
        text = "".join(f"{pair[side].strip()}\n" for pair in columns)
        atomic_write(Path(path), text)
