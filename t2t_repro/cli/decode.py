"""`t2t decode`: translate a file or standard input, line by line."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence

from t2t_repro.cli.engine import add_engine_flags, load_engine
from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_writable,
    read_input,
    write_lines,
)
from t2t_repro.decoding.sentences import Hypothesis, count_repairs
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import as_line

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
    add_engine_flags(parser)
    add_decode_hparams_flag(parser, "decode")


def run(args: argparse.Namespace) -> int:
    """Translate and write."""
    hparams = DecodeHParams().parse_for("decode", args.decode_hparams)
    check_writable("--decode_to_file", args.decode_to_file)
    # Report broken input before TensorFlow is imported and a model is loaded.
    lines = read_input(args.decode_from_file)
    system = load_engine(args, hparams)
    best: list[Hypothesis] = []

    def formatted() -> Iterator[str]:
        with Progress(len(lines), "sentence") as progress:
            for hypotheses in system.hypotheses(lines, hparams, progress.advance):
                best.append(hypotheses[0])
                yield format_line(hypotheses, hparams)

    write_lines(args.decode_to_file, formatted())
    _log_repairs(best)
    return 0


def _log_repairs(hypotheses: Sequence[Hypothesis]) -> None:
    """Log how many outputs were repaired, and why."""
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
