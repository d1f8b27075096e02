"""`t2t evaluate`: translate a split or a file and score it, as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.decode import (
    STANDARD_STREAM,
    as_line,
    check_writable,
    read_input,
    repair_summary,
    write_output,
)
from t2t_repro.cli.decode_arguments import add_decode_hparams, decode_hparams
from t2t_repro.cli.flags import at_least
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.progress import progress
from t2t_repro.cli.system_arguments import add_system_arguments
from t2t_repro.constants import BRANCH_WEIGHT_MODES
from t2t_repro.errors import UsageError, UserError

if TYPE_CHECKING:
    from t2t_repro.cli.system import System
    from t2t_repro.data.problem import Problem

DEFAULT_SPLIT = "test"
WITHOUT = dict.fromkeys(
    ("return_beams", "write_beam_scores"), "the best translation alone is scored."
)


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser(
        "evaluate",
        description="Translate and score; one JSON object with scores and signatures.",
    )
    add_system_arguments(parser)
    parser.add_argument(
        "--split",
        choices=("dev", "test"),
        help=f"prepared split (default: {DEFAULT_SPLIT})",
    )
    parser.add_argument("--source", help="file to translate, in place of a split")
    parser.add_argument("--reference", help="its translation, line by line")
    parser.add_argument(
        "--data_dir", help="prepared data (default: where the run was trained from)"
    )
    parser.add_argument("--decode_to_file", help="also write the translations here")
    parser.add_argument(
        "--branch_weights",
        choices=BRANCH_WEIGHT_MODES,
        default=BRANCH_WEIGHT_MODES[0],
        help="of a Weighted Transformer: score it with other kappa and alpha than the "
        "learned ones (default: learned)",
    )
    parser.add_argument(
        "--branch_seed",
        metavar="N",
        type=at_least(0, int),
        default=1,
        help="of --branch_weights random (default: 1)",
    )
    add_decode_hparams(parser, WITHOUT)


def run(args: argparse.Namespace) -> int:
    """Translate, score and print."""
    hparams = decode_hparams(args, WITHOUT)
    _check_flags(args)
    # Broken files are answered before TensorFlow is imported and a model is loaded.
    pairs = None if args.source is None else _read_pairs(args.source, args.reference)
    import_tensorflow()
    from t2t_repro.cli.system import load_system
    from t2t_repro.evaluation.branch_weights import replace_branch_weights

    system = load_system(args)
    hparams = system.with_problem_defaults(hparams)
    replace_branch_weights(system.model, args.branch_weights, args.branch_seed)
    sources, references = pairs or _split_pairs(args, system)
    translator = system.translator(hparams)
    with progress(len(sources), "sentence") as advance:
        translated = translator.translate(sources, advance)
    hypotheses = [as_line(best[0].text) for best in translated]
    if args.decode_to_file:
        write_output(args.decode_to_file, "".join(f"{h}\n" for h in hypotheses))
    scores = dataclasses.asdict(system.problem.score(hypotheses, references))
    repairs = repair_summary([best[0] for best in translated])
    about = {
        "problem": system.run.problem,
        "checkpoint": system.checkpoint,
        "data": args.source or args.split or DEFAULT_SPLIT,
        "decode_hparams": {
            name: value
            for name, value in hparams.values().items()
            if name not in WITHOUT
        },
    }
    if args.branch_weights != BRANCH_WEIGHT_MODES[0]:
        about["branch_weights"] = args.branch_weights
    if repairs:
        about["repaired"] = sum(bool(best[0].repairs) for best in translated)
        about["repairs"] = repairs
    print(json.dumps(scores | about, indent=2, ensure_ascii=False))
    return 0


def _check_flags(args: argparse.Namespace) -> None:
    if (args.source is None) != (args.reference is None):
        raise UsageError("--source and --reference go together: give both or neither.")
    if args.source is not None and args.split is not None:
        raise UsageError("give either --split or --source and --reference, not both.")
    if args.decode_to_file == STANDARD_STREAM:
        raise UsageError(
            f"received --decode_to_file {STANDARD_STREAM}, expected a file: the scores "
            "go to standard output."
        )
    if args.decode_to_file:
        check_writable("--decode_to_file", args.decode_to_file)


def _read_pairs(source: str, reference: str) -> tuple[list[str], list[str]]:
    sources, references = read_input(source), read_input(reference)
    check_same_length(sources, references)
    return sources, references


def _split_pairs(
    args: argparse.Namespace, system: System
) -> tuple[list[str], list[str]]:
    data_dir = args.data_dir or system.run.data_dir
    return reference_split(data_dir, system.problem, args.split or DEFAULT_SPLIT)


def check_same_length(sources: list[str], references: list[str]) -> None:
    """Refuse a source and a reference of different lengths, before translating."""
    if len(sources) != len(references):
        raise UserError(
            f"received {len(sources)} lines to translate and {len(references)} "
            "references, expected as many of one as of the other."
        )


def reference_split(
    data_dir: str | Path, problem: Problem, split: str
) -> tuple[list[str], list[str]]:
    """Read the raw text of a prepared split: sources and references.

    Raises:
        UserError: If the split is not there.
    """
    from t2t_repro.data.prepared import PreparedData

    return PreparedData.load(data_dir, problem).raw_text(split)
