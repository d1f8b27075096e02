"""`t2t decode`: translate a file or standard input, line by line."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.framework import load_system
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_writable,
    read_input,
    write_lines,
)
from t2t_repro.cli.target_prefix import add_prefix_flag, read_prefixes
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import as_line

if TYPE_CHECKING:
    from t2t_repro.decoding.translate import Hypothesis

logger = logging.getLogger(__name__)

DESCRIPTION = (
    "Translate lines. The output has as many lines as the input, in the same order; "
    "empty lines stay empty."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, ensembles=True)
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
    add_prefix_flag(parser)
    add_decode_hparams_flag(parser, "decode")


def run(args: argparse.Namespace) -> int:
    """Translate and write."""
    hparams = DecodeHParams().parse_for("decode", args.decode_hparams)
    check_writable("--decode_to_file", args.decode_to_file)
    # Report broken input before TensorFlow is imported and a model is loaded.
    lines = read_input(args.decode_from_file)
    prefixes = read_prefixes(args, lines)
    system = load_system(args, hparams, ensembles=True)
    best: list[Hypothesis] = []

    def formatted() -> Iterator[str]:
        with Progress(len(lines), "sentence") as progress:
            for hypotheses in system.hypotheses(
                lines, hparams, progress.advance, prefixes=prefixes
            ):
                best.append(hypotheses[0])
                yield format_line(hypotheses, hparams)

    write_lines(args.decode_to_file, formatted())
    _log_repairs(best)
    return 0


def _log_repairs(hypotheses: Sequence[Hypothesis]) -> None:
    """Log how many outputs were repaired, and why."""
    from t2t_repro.runs.system import count_repairs

    repairs = count_repairs(hypotheses)
    if repairs:
        logger.info(
            "repaired %d of %d: %s",
            sum(bool(hypothesis.repairs) for hypothesis in hypotheses),
            len(hypotheses),
            ", ".join(f"{count} x {fault}" for fault, count in repairs.items()),
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
