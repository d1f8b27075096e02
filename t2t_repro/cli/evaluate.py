"""`t2t evaluate`: translate a split or a file and score it."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from t2t_repro.cli.engines import TENSORFLOW, add_engine_flags, load_translating_system
from t2t_repro.cli.flags import (
    add_bleu_tokenizer_flag,
    add_decode_hparams_flag,
    add_reference_flag,
    add_system_flags,
    number_in_range,
)
from t2t_repro.cli.loading import import_tensorflow, warm_up
from t2t_repro.cli.report import (
    Scored,
    report_flags,
    reports,
    show_report,
    wants_report,
)
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_output,
    check_read_once,
    check_replaces_no_input,
    named_references,
    read_input,
    warn_of_equal_texts,
    write_lines,
)
from t2t_repro.constants import AUTO_TOKENIZER, BRANCH_WEIGHT_MODES
from t2t_repro.errors import UsageError, UserError
from t2t_repro.progress import Progress
from t2t_repro.runs.training_config import check_bleu_tokenizer
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import check_same_length
from t2t_repro.translation_scores import (
    announced_tokenizer,
    check_usable,
    score_translations,
)

if TYPE_CHECKING:
    from t2t_repro.runs import Evaluation, System, TranslatingSystem


DEFAULT_SPLIT = "test"
DESCRIPTION = (
    "Translate and score: one JSON object with scores and signatures, or a table on a "
    "terminal. With --hypothesis, score existing translations."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, required=False, ensembles=True)
    parser.add_argument(
        "--hypothesis",
        metavar="FILE",
        help="translations to score against --reference, without a run; - = standard "
        "input",
    )
    add_engine_flags(parser)
    parser.add_argument(
        "--split",
        choices=("dev", "test"),
        help=f"prepared split (default: {DEFAULT_SPLIT})",
    )
    parser.add_argument(
        "--source", metavar="FILE", help="file to translate instead of a split"
    )
    add_reference_flag(parser)
    parser.add_argument(
        "--data_dir",
        metavar="DIR",
        help="prepared data (default: the data that the run was trained on)",
    )
    parser.add_argument(
        "--decode_to_file", metavar="FILE", help="also write the translations here"
    )
    parser.add_argument(
        "--branch_weights",
        choices=BRANCH_WEIGHT_MODES,
        help="kappa and alpha of a Weighted Transformer for this evaluation (default: "
        "learned)",
    )
    parser.add_argument(
        "--branch_seed",
        metavar="N",
        type=number_in_range(0, int),
        help="seed of --branch_weights random (default: 1)",
    )
    add_bleu_tokenizer_flag(parser, "the run's; without a run, auto")
    add_decode_hparams_flag(parser, "evaluate")
    for report in reports():
        report.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Translate, score and print."""
    if args.hypothesis is not None:
        return score_hypothesis(args)
    if args.output_dir is None:
        raise UsageError(
            "--output_dir is missing, expected the folder of a run; or give "
            "--hypothesis and --reference to score existing translations."
        )
    hparams = DecodeHParams().parse_for("evaluate", args.decode_hparams)
    _check_flags(args)
    for report in reports():
        report.check_flags(args)
    check_usable(args.bleu_tokenizer or AUTO_TOKENIZER)
    # Report broken files before TensorFlow is imported and a model is loaded.
    pairs, others = _read_files(args)
    system = load_translating_system(args, hparams, parallel_batches=True)
    for report in reports():
        report.check_problem(args, system.problem)
    if args.bleu_tokenizer is not None:
        check_bleu_tokenizer(args.bleu_tokenizer, system.problem)
        system.problem = system.problem.with_bleu_tokenizer(args.bleu_tokenizer)
    hparams = system.with_problem_defaults(hparams)
    if args.engine == TENSORFLOW:
        mode = args.branch_weights or BRANCH_WEIGHT_MODES[0]
        seed = 1 if args.branch_seed is None else args.branch_seed
        cast("System", system).replace_branch_weights(mode, seed)
    if pairs is None:
        pairs = _read_split(args, system)
    tokenizer = _choose_tokenizer(system, pairs[1])
    on_terminal = sys.stderr.isatty()
    if on_terminal:
        warm_up(system, hparams)
    with Progress(len(pairs[0]), "sentence", warm=on_terminal) as progress:
        evaluation = system.evaluate(
            *pairs, hparams, progress.advance, other_references=others
        )
    if args.decode_to_file:
        write_lines(args.decode_to_file, evaluation.hypotheses)
    values = _report(args, system, hparams, evaluation)
    sources, references = pairs
    scored = Scored(
        values, evaluation.hypotheses, references, sources, system, tokenizer
    )
    show_report(args, scored)
    return 0


def _choose_tokenizer(system: TranslatingSystem, references: Sequence[str]) -> str:
    """Choose the tokenizer of all BLEU scores, and return it."""
    problem = system.problem
    if not problem.scores_bleu:
        return problem.bleu_tokenizer
    chosen = announced_tokenizer(
        problem.bleu_tokenizer, references, problem.target_language
    )
    system.problem = problem.with_bleu_tokenizer(chosen)
    return chosen


def _report(
    args: argparse.Namespace,
    system: TranslatingSystem,
    hparams: DecodeHParams,
    evaluation: Evaluation,
) -> dict[str, Any]:
    """Return the scores and how they were made."""
    report = dataclasses.asdict(evaluation.scores) | {
        "problem": system.problem.name,
        "checkpoint": system.checkpoint,
        "data": args.source or args.split or DEFAULT_SPLIT,
        "decode_hparams": {
            name: value
            for name, value in hparams.values().items()
            if "evaluate" in hparams.about(name).read_by
        },
    }
    report.update(system.engine_report)
    if args.branch_weights not in (None, BRANCH_WEIGHT_MODES[0]):
        report["branch_weights"] = args.branch_weights
    if evaluation.repairs:
        report["repaired"] = evaluation.repaired
        report["repairs"] = evaluation.repairs
    return report


def _check_flags(args: argparse.Namespace) -> None:
    if (args.source is None) != (args.reference is None):
        raise UsageError("--source and --reference go together: give both or neither.")
    check_read_once((args.source, *(args.reference or ())))
    if args.source is not None and args.split is not None:
        raise UsageError("give either --split or --source and --reference, not both.")
    replaced = args.branch_weights not in (None, BRANCH_WEIGHT_MODES[0])
    if args.engine != TENSORFLOW and replaced:
        raise UsageError(
            f"received --branch_weights {args.branch_weights} and --engine "
            f"{args.engine}, which has no Weighted Transformer: leave out one of the "
            "two."
        )
    if args.data_dir and args.source is not None and not wants_report(args):
        raise UsageError(
            "received --data_dir with --source, which only a report reads then: add "
            f"{report_flags()}, or leave out --data_dir."
        )
    if args.branch_seed is not None and args.branch_weights != "random":
        raise UsageError("--branch_seed needs --branch_weights random.")
    if args.decode_to_file == STANDARD_STREAM:
        raise UsageError(
            f"received --decode_to_file {STANDARD_STREAM}, expected a file: the scores "
            "go to standard output."
        )
    if args.decode_to_file:
        check_output("--decode_to_file", args.decode_to_file)
        inputs = (args.source, *(args.reference or ()))
        check_replaces_no_input("--decode_to_file", args.decode_to_file, inputs)


def _read_split(
    args: argparse.Namespace, system: TranslatingSystem
) -> tuple[list[str], list[str]]:
    """Return the sources and references of a split of the prepared data.

    Raises:
        UserError: If the data is missing or damaged, or has no such split.
        UsageError: If neither `--data_dir` nor the run names the data.
    """
    # Prepared data needs TensorFlow, whatever the engine.
    import_tensorflow()
    from t2t_repro.data.prepared import PreparedData

    data_dir = args.data_dir or system.data_dir
    if data_dir is None:
        raise UsageError("--data_dir is missing, expected the prepared data.")
    data = PreparedData.load(data_dir, system.problem)
    if args.split is None and DEFAULT_SPLIT not in data.splits:
        raise UserError(
            f"the data in {data_dir} has no {DEFAULT_SPLIT} split, which is evaluated "
            "by default: give --split dev, or --source and --reference."
        )
    return data.raw_text(args.split or DEFAULT_SPLIT)


def _read_files(
    args: argparse.Namespace,
) -> tuple[tuple[list[str], list[str]] | None, list[list[str]]]:
    """Return the sources and references of the given files, and further references."""
    if args.source is None:
        return None, []
    sources, *streams = map(read_input, (args.source, *args.reference))
    for name, stream in zip(args.reference, streams, strict=True):
        check_same_length(sources, stream, args.source, name)
    texts = named_references(args.reference, streams)
    warn_of_equal_texts([(f"--source {args.source}", sources), *texts])
    return (sources, streams[0]), streams[1:]


# Flags that name a run or its input.
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
    for report in reports():
        report.check_flags(args)
    hypotheses = read_input(args.hypothesis)
    references, *others = (
        _read_aligned(name, args.hypothesis, hypotheses) for name in args.reference
    )
    sources = None
    if args.source:
        sources = _read_aligned(args.source, args.hypothesis, hypotheses)
    texts = [(f"--hypothesis {args.hypothesis}", hypotheses)]
    texts += named_references(args.reference, [references, *others])
    texts += [(f"--source {args.source}", sources)] if sources else []
    warn_of_equal_texts(texts)
    tokenizer = announced_tokenizer(args.bleu_tokenizer or AUTO_TOKENIZER, references)
    scores = score_translations(hypotheses, references, tokenizer, others)
    named = args.reference if others else args.reference[0]
    data = {"hypothesis": args.hypothesis, "reference": named}
    values = dataclasses.asdict(scores) | data
    scored = Scored(values, hypotheses, references, sources, tokenizer=tokenizer)
    show_report(args, scored)
    return 0


def _read_aligned(name: str, hypothesis: str, hypotheses: list[str]) -> list[str]:
    """Read a file that must have one line per hypothesis."""
    lines = read_input(name)
    check_same_length(hypotheses, lines, hypothesis, name)
    return lines
