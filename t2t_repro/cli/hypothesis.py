"""`t2t evaluate --hypothesis`: score translations that exist already.

tensor2tensor: `t2t-bleu`. Imports no TensorFlow.
"""

from __future__ import annotations

import argparse
import dataclasses

from t2t_repro.choices import AUTO_TOKENIZER
from t2t_repro.cli.engine import TENSORFLOW
from t2t_repro.cli.report import (
    Scored,
    check_report_flags,
    report_flags,
    show_report,
    wants_report,
)
from t2t_repro.cli.streams import (
    check_read_once,
    named_references,
    read_input,
    warn_of_equal_texts,
)
from t2t_repro.errors import UsageError, UserError
from t2t_repro.text_tables import quantity

# Flags that name a run, or say what it translates.
_OF_A_RUN = (
    "output_dir",
    "checkpoint_path",
    "t2t_usr_dir",
    "split",
    "data_dir",
    "decode_to_file",
    "decode_hparams",
    "branch_weights",
    "branch_seed",
    "quantization",
    "export_dir",
)


def add_hypothesis_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--hypothesis`."""
    parser.add_argument(
        "--hypothesis",
        metavar="FILE",
        help="translations to score against --reference, without a run; - = standard "
        "input",
    )


def score_hypothesis(args: argparse.Namespace) -> int:
    """Score the translations of `--hypothesis` and print the scores.

    The score card also reads `--source`, to find sentences that were copied.

    Raises:
        UsageError: If the flags do not fit.
        UserError: If a file cannot be read, or the numbers of lines differ.
    """
    if args.reference is None:
        raise UsageError("--hypothesis and --reference go together: give both.")
    given = [name for name in _OF_A_RUN if getattr(args, name) not in (None, "")]
    if args.engine != TENSORFLOW:  # its default
        given.append("engine")
    if given:
        raise UsageError(
            f"received --hypothesis and --{given[0]}: scoring existing translations "
            "needs no run. Leave one of them out."
        )
    if args.source and not wants_report(args):
        raise UsageError(
            "received --hypothesis and --source, which only a report reads: add "
            f"{report_flags()}, or leave out --source."
        )
    check_read_once((args.hypothesis, *args.reference, args.source))
    check_report_flags(args)
    hypotheses = read_input(args.hypothesis)
    references, *others = (
        _read_aligned(name, args.hypothesis, len(hypotheses)) for name in args.reference
    )
    sources = None
    if args.source:
        sources = _read_aligned(args.source, args.hypothesis, len(hypotheses))
    texts = [(f"--hypothesis {args.hypothesis}", hypotheses)]
    texts += named_references(args.reference, [references, *others])
    texts += [(f"--source {args.source}", sources)] if sources else []
    warn_of_equal_texts(texts)
    from t2t_repro.translation_scores import announced_tokenizer, score_translations

    tokenizer = announced_tokenizer(args.bleu_tokenizer or AUTO_TOKENIZER, references)
    scores = score_translations(hypotheses, references, tokenizer, others)
    named = args.reference if others else args.reference[0]
    data = {"hypothesis": args.hypothesis, "reference": named}
    report = dataclasses.asdict(scores) | data
    scored = Scored(report, hypotheses, references, sources, tokenizer=tokenizer)
    show_report(args, scored)
    return 0


def _read_aligned(name: str, hypothesis: str, num_lines: int) -> list[str]:
    """Read the lines of a file that must have as many as the hypotheses."""
    lines = read_input(name)
    if len(lines) != num_lines:
        raise UserError(
            f"received {quantity(num_lines, 'line')} in {hypothesis} and "
            f"{len(lines)} in {name}, expected equal numbers."
        )
    return lines
