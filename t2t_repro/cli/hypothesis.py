"""`t2t evaluate --hypothesis`: score translations that exist already.

tensor2tensor: `t2t-bleu`. Imports no TensorFlow.
"""

from __future__ import annotations

import argparse
import dataclasses
import json

from t2t_repro.cli.streams import read_input
from t2t_repro.errors import UsageError, UserError

# Flags that name a run, or say what it translates.
_OF_A_RUN = (
    "output_dir",
    "checkpoint_path",
    "t2t_usr_dir",
    "split",
    "source",
    "data_dir",
    "decode_to_file",
    "decode_hparams",
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

    Raises:
        UsageError: If the flags do not fit.
        UserError: If a file cannot be read, or the numbers of lines differ.
    """
    if args.reference is None:
        raise UsageError("--hypothesis and --reference go together: give both.")
    given = [name for name in _OF_A_RUN if getattr(args, name)]
    if given:
        raise UsageError(
            f"received --hypothesis and --{given[0]}: scoring existing translations "
            "needs no run. Leave one of them out."
        )
    hypotheses, references = read_input(args.hypothesis), read_input(args.reference)
    if len(hypotheses) != len(references):
        raise UserError(
            f"received {len(hypotheses)} lines in {args.hypothesis} and "
            f"{len(references)} in {args.reference}, expected one reference per line."
        )
    from t2t_repro.metrics.translation import score_translations

    scores = score_translations(hypotheses, references)
    data = {"hypothesis": args.hypothesis, "reference": args.reference}
    report = dataclasses.asdict(scores) | data
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 0
