"""`t2t score`: log-probabilities of given translations, line by line."""

from __future__ import annotations

import argparse
import json
import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.loading import load_system
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    add_output_format_flag,
    check_output,
    check_read_once,
    check_replaces_no_input,
    read_input,
    write_lines,
)
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import check_same_length
from t2t_repro.text_tables import quantity

if TYPE_CHECKING:
    from t2t_repro.runs import PairScore

logger = logging.getLogger(__name__)

DESCRIPTION = (
    "Write the log-probability of each target given its source, in nats; the score, "
    "which is the log-probability divided by the length penalty; and the number of "
    "target tokens with the end of sentence. Columns are separated by tabs."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, ensembles=True)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            metavar="FILE",
            required=True,
            help=f"UTF-8 {side} sentences, plain or .gz, one per line; - = standard "
            "input",
        )
    parser.add_argument(
        "--scores_to_file",
        metavar="FILE",
        default=STANDARD_STREAM,
        help="file for the scores; - = standard output (default)",
    )
    parser.add_argument(
        "--per_token",
        action="store_true",
        help="also write the tokens and the log-probability of each",
    )
    add_output_format_flag(parser)
    add_decode_hparams_flag(parser, "score")


def run(args: argparse.Namespace) -> int:
    """Score and write."""
    hparams = DecodeHParams().parse_for("score", args.decode_hparams)
    check_read_once((args.source, args.target))
    check_output("--scores_to_file", args.scores_to_file)
    check_replaces_no_input(
        "--scores_to_file", args.scores_to_file, (args.source, args.target)
    )
    # Report broken files before TensorFlow is imported and a model is loaded.
    sources, targets = read_input(args.source), read_input(args.target)
    check_same_length(sources, targets, args.source, args.target)
    system = load_system(args, hparams, ensembles=True)
    totals: list[tuple[int, float]] = []

    def lines() -> Iterator[str]:
        with Progress(len(sources), "pair") as progress:
            scorer = system.scorer(hparams)
            scores = scorer.score(sources, targets, progress.advance)
            for number, score in enumerate(scores, start=1):
                totals.append((len(score.tokens), score.log_prob))
                if args.output_format == "json":
                    yield _json_line(number, score, per_token=args.per_token)
                else:
                    yield _text_line(score, per_token=args.per_token)

    write_lines(args.scores_to_file, lines())
    _log_mean(totals)
    return 0


def _text_line(score: PairScore, *, per_token: bool) -> str:
    """Format a score as columns that are separated by tabs.

    Args:
        score: The score.
        per_token: Whether to add a column of tokens and a column of their
            log-probabilities, both separated by spaces.
    """
    cells = [f"{score.log_prob:.6f}", f"{score.score:.6f}", str(len(score.tokens))]
    if per_token:
        cells.append(" ".join(score.tokens))
        cells.append(" ".join(f"{value:.6f}" for value in score.token_log_probs))
    return "\t".join(cells)


def _json_line(number: int, score: PairScore, *, per_token: bool) -> str:
    """Format a score as a JSON object on one line.

    Args:
        number: Number of the line, counted from 1.
        score: The score.
        per_token: Whether to add lists of tokens and of their log-probabilities.
    """
    values: dict[str, object] = {
        "line": number,
        "log_prob": round(score.log_prob, 6),
        "score": round(score.score, 6),
        "tokens": len(score.tokens),
    }
    if per_token:
        values["pieces"] = score.tokens
        values["token_log_probs"] = [round(value, 6) for value in score.token_log_probs]
    return json.dumps(values, ensure_ascii=False)


def _log_mean(totals: Sequence[tuple[int, float]]) -> None:
    """Log the average per token over all pairs, and the perplexity.

    Args:
        totals: Number of tokens and log-probability of each pair.
    """
    tokens = sum(count for count, _ in totals)
    if not tokens:
        return
    mean = sum(log_prob for _, log_prob in totals) / tokens
    logger.info(
        "%s, %s: %.4f nats per token, perplexity %.2f",
        quantity(len(totals), "pair"),
        quantity(tokens, "token"),
        mean,
        math.exp(min(-mean, 700.0)),
    )
