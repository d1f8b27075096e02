"""`t2t compare`: is a system better than a baseline, or is it chance?"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence

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
from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.errors import UsageError
from t2t_repro.features.scores.significance import (
    TESTS,
    Comparison,
    compare_translations,
)
from t2t_repro.text_tables import aligned, markdown
from t2t_repro.translation_scores import announced_tokenizer

DESCRIPTION = (
    "Test the significance of the differences between translations of the same text, "
    "by sacreBLEU: BLEU, chrF and TER with confidence intervals and p-values."
)


SIGNIFICANT = 0.05
_LONGEST_NAME = 28  # so that three metrics fit into 100 columns


def comparison_lines(found: Sequence[Comparison]) -> list[str]:
    """Return an aligned table with its explanation, for a terminal.

    Systems with long names are numbered; their names follow the table.

    Args:
        found: Return value of `compare_translations`; the first system is the baseline.
    """
    names = _systems(found)
    if max(map(len, names)) <= _LONGEST_NAME:
        labels, legend = names, []
    else:
        labels = [f"[{n}]" for n in range(1, len(names) + 1)]
        legend = ["", *(f"{a} {b}" for a, b in zip(labels, names, strict=True))]
    rows = _rows(found, labels)
    table = aligned(rows, right=range(1, len(rows[0])))
    return [*table, *legend, "", *_notes(found, labels[0])]


def comparison_markdown(found: Sequence[Comparison]) -> list[str]:
    """Return a Markdown table with its explanation.

    Args:
        found: Return value of `compare_translations`; the first system is the baseline.
    """
    names = _systems(found)
    rows = _rows(found, names)
    table = markdown(rows, right=range(1, len(rows[0])))
    notes = (f"- {note}" for note in _notes(found, names[0]))
    return [*table, "", *(note.replace("*", r"\*") for note in notes)]


def _systems(found: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(comparison.system for comparison in found))


def _metrics(found: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(comparison.metric for comparison in found))


def _rows(found: Sequence[Comparison], labels: Sequence[str]) -> list[list[str]]:
    metrics = _metrics(found)
    by_place = {(c.system, c.metric): c for c in found}
    rows = [["system", *(cell for metric in metrics for cell in (metric, "p"))]]
    for label, system in zip(labels, _systems(found), strict=True):
        cells = (_cells(by_place[system, metric]) for metric in metrics)
        rows.append([label, *(cell for pair in cells for cell in pair)])
    return rows


def _cells(comparison: Comparison) -> tuple[str, str]:
    score = f"{comparison.score:.2f} ± {comparison.confidence:.2f}"
    if comparison.p_value is None:
        return score, "-"
    star = "*" if comparison.p_value < SIGNIFICANT else " "
    return score, f"{comparison.p_value:.4f}{star}"


def _notes(found: Sequence[Comparison], baseline: str) -> list[str]:
    signatures = {c.metric: c.signature for c in found}
    return [
        "±: half of the 95 % confidence interval, by bootstrap. A lower TER is better.",
        f"p: probability of so large a difference from {baseline} by chance; * p < "
        f"{SIGNIFICANT}.",
        *_warn_of_several(found),
        *(f"{metric}: {signature}" for metric, signature in signatures.items()),
    ]


def _warn_of_several(found: Sequence[Comparison]) -> list[str]:
    """Warn if one of several comparisons may be significant by chance."""
    count = len(_systems(found)) - 1
    if count < 2:
        return []
    return [
        f"p is not corrected for {count} comparisons: by Bonferroni, look for p < "
        f"{SIGNIFICANT / count:.4f}."
    ]


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
