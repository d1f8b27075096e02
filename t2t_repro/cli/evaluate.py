"""`t2t evaluate`: translate a split or a file and score it, as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.decode import (
    add_decode_hparams_argument,
    as_line,
    check_writable,
    read_input,
    write_output,
)
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.system_arguments import add_system_arguments
from t2t_repro.errors import UsageError, UserError
from t2t_repro.hyperparameters import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.data.problem import Problem


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser(
        "evaluate",
        description="Translate and score; one JSON object with scores and signatures.",
    )
    add_system_arguments(parser)
    parser.add_argument(
        "--split", choices=("dev", "test"), help="prepared split (default: test)"
    )
    parser.add_argument("--source", help="file to translate, in place of a split")
    parser.add_argument("--reference", help="its translation, line by line")
    parser.add_argument(
        "--data_dir", help="prepared data (default: where the run was trained from)"
    )
    parser.add_argument("--decode_to_file", help="also write the translations here")
    add_decode_hparams_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Translate, score and print."""
    hparams = DecodeHParams().parse(args.decode_hparams)
    if (args.source is None) != (args.reference is None):
        raise UsageError("--source and --reference go together: give both or neither.")
    if args.source is not None and args.split is not None:
        raise UsageError("give either --split or --source and --reference, not both.")
    if args.decode_to_file:
        check_writable(args.decode_to_file)
    import_tensorflow()
    from t2t_repro.cli.system import load_system
    from t2t_repro.metrics.translation import score_translations

    system = load_system(args)
    if args.source is not None:
        sources, references = read_input(args.source), read_input(args.reference)
    else:
        sources, references = reference_split(
            args.data_dir or system.run.data_dir, system.problem, args.split or "test"
        )
    check_same_length(sources, references)
    translated = system.translator(hparams).translate(sources)
    hypotheses = [as_line(best[0].text) for best in translated]
    if args.decode_to_file:
        write_output(args.decode_to_file, "".join(f"{h}\n" for h in hypotheses))
    scores = dataclasses.asdict(score_translations(hypotheses, references))
    about = {
        "problem": system.run.problem,
        "checkpoint": system.checkpoint,
        "data": args.source or args.split or "test",
        "decode_hparams": hparams.values(),
    }
    print(json.dumps(scores | about, indent=2, ensure_ascii=False))
    return 0


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
    from t2t_repro.data.manifest import raw_text
    from t2t_repro.data.text_files import read_lines

    source, reference = raw_text(data_dir, problem, split)
    return list(read_lines(source)), list(read_lines(reference))
