"""`t2t compare`: is a system better than a baseline, or is it chance?"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence

from t2t_repro.choices import AUTO_TOKENIZER
from t2t_repro.cli.flags import (
    add_bleu_tokenizer_flag,
    add_reference_flag,
    number_in_range,
)
from t2t_repro.cli.report import scores_json
from t2t_repro.cli.streams import (
    check_read_once,
    named_references,
    on_terminal,
    read_input,
    warn_of_equal_texts,
)
from t2t_repro.errors import UsageError
from t2t_repro.features.scores.comparison_table import (
    comparison_lines,
    comparison_markdown,
)
from t2t_repro.features.scores.significance import (
    TESTS,
    Comparison,
    compare_translations,
)
from t2t_repro.translation_scores import announced_tokenizer

DESCRIPTION = (
    "Test the significance of the differences between translations of the same text, "
    "by sacreBLEU: BLEU, chrF and TER with confidence intervals and p-values."
)


def _json_lines(found: Sequence[Comparison]) -> list[str]:
    return [scores_json([dataclasses.asdict(c) for c in found])]


FORMATS: dict[str, Callable[[Sequence[Comparison]], list[str]]] = {
    "json": _json_lines,
    "text": comparison_lines,
    "markdown": comparison_markdown,
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("baseline", help="translations of the baseline, line by line")
    parser.add_argument("systems", nargs="+", help="translations to compare with it")
    add_reference_flag(parser, required=True)
    parser.add_argument(
        "--test",
        choices=tuple(TESTS),
        default="bootstrap",
        help="paired bootstrap resampling, or paired approximate randomisation "
        "(default: bootstrap)",
    )
    parser.add_argument(
        "--samples",
        metavar="N",
        type=number_in_range(0, int),
        default=0,
        help="resamples or trials (default: 0 = sacreBLEU's 1,000 or 10,000)",
    )
    add_bleu_tokenizer_flag(parser, "auto")
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        help="one JSON list, an aligned table, or a Markdown table (default: text on a "
        "terminal, else json)",
    )


def run(args: argparse.Namespace) -> int:
    """Compare and print."""
    names = [args.baseline, *args.systems]
    if len(set(names)) < len(names):
        raise UsageError("received one file twice, expected different translations.")
    check_read_once([*names, *args.reference])
    systems = {name: read_input(name) for name in names}
    references, *others = map(read_input, args.reference)
    texts = named_references(args.reference, [references, *others])
    for system in systems.items():
        warn_of_equal_texts([system, *texts])
    tokenizer = announced_tokenizer(args.bleu_tokenizer or AUTO_TOKENIZER, references)
    found = compare_translations(
        systems, references, args.test, args.samples, tokenizer, others
    )
    form = args.format or ("text" if on_terminal() else "json")
    print(*FORMATS[form](found), sep="\n")
    return 0
