"""`t2t decode`: translate a file or standard input, line by line."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.framework import load_system, warm_up
from t2t_repro.cli.live_input import LiveLines
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_writable,
    open_input,
    write_lines,
)
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import as_line

if TYPE_CHECKING:
    from t2t_repro.decoding.translate import Hypothesis
    from t2t_repro.runs import System

logger = logging.getLogger(__name__)

DESCRIPTION = (
    "Translate lines. The output has as many lines as the input, in the same order; "
    "empty lines stay empty."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser)
    parser.add_argument(
        "--decode_from_file",
        metavar="FILE",
        default=STANDARD_STREAM,
        help="UTF-8 text, plain or .gz, one sentence per line; - = standard input "
        "(default)",
    )
    parser.add_argument(
        "--decode_to_file",
        metavar="FILE",
        default=STANDARD_STREAM,
        help="file for the translations; - = standard output (default)",
    )
    add_decode_hparams_flag(parser, "decode")


def run(args: argparse.Namespace) -> int:
    """Translate and write."""
    hparams = DecodeHParams().parse_for("decode", args.decode_hparams)
    check_writable("--decode_to_file", args.decode_to_file)
    # Report broken input before TensorFlow is imported and a model is loaded.
    source = open_input(args.decode_from_file)
    system = load_system(args, hparams)
    repairs = RepairCount()
    translated = _translated(system, source, hparams)
    lines = (format_line(repairs.count(found), hparams) for found in translated)
    write_lines(args.decode_to_file, lines)
    repairs.log()
    return 0


def _translated(
    system: System, source: list[str] | LiveLines, hparams: DecodeHParams
) -> Iterator[list[Hypothesis]]:
    """Yield the hypotheses of every line, in order."""
    if sys.stderr.isatty() or (isinstance(source, LiveLines) and source.must_wait):
        warm_up(system, hparams)
    if isinstance(source, list):
        with Progress(len(source), "sentence") as progress:
            yield from system.hypotheses(source, hparams, progress.advance)
        return
    from t2t_repro.decoding.translate import CHUNK_SIZE

    for chunk in source.chunks(CHUNK_SIZE):
        yield from system.hypotheses(chunk, hparams)


class RepairCount:
    """Count the outputs that were repaired."""

    def __init__(self) -> None:
        self._outputs = 0
        self._repaired: list[Hypothesis] = []

    def count(self, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Count the best hypothesis of a sentence, and return all of them."""
        self._outputs += 1
        self._repaired += [best for best in hypotheses[:1] if best.repairs]
        return hypotheses

    def log(self) -> None:
        """Log how many outputs were repaired, and why."""
        from t2t_repro.runs.system import count_repairs

        if self._repaired:
            repairs = count_repairs(self._repaired).items()
            logger.info(
                "repaired %d of %d: %s",
                len(self._repaired),
                self._outputs,
                ", ".join(f"{count} x {fault}" for fault, count in repairs),
            )


def format_line(hypotheses: Sequence[Hypothesis], hparams: DecodeHParams) -> str:
    """Format a sentence's hypotheses as tensor2tensor does, separated by tabs.

    With several columns, a tab inside a translation becomes a space.
    """
    texts = [as_line(hypothesis.text) for hypothesis in hypotheses]
    if not (hparams.return_beams or hparams.write_beam_scores):
        return texts[0]
    cells = []
    for text, hypothesis in zip(texts, hypotheses, strict=True):
        cells.append(text.replace("\t", " "))
        if hparams.write_beam_scores:
            cells.append(f"{hypothesis.score:.4f}")
    return "\t".join(cells)
