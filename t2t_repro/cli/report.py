"""Output of `t2t evaluate`: the scores, or a report of a feature.

Scores are JSON for programs, and a table for people at a terminal. A report is a module
of a feature with these names:

- `FLAGS`: the names of its flags;
- `add_flags(parser)`;
- `is_wanted(args)`;
- `check_flags(args)`: refuses, before any work, flags that cannot be followed;
- `check_problem(args, problem)`: refuses a report that does not fit the problem;
- `show(args, scored)`: prints the report.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from t2t_repro.cli.streams import on_terminal
from t2t_repro.features import modules
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text_tables import aligned, printable
from t2t_repro.translation_scores import DEFAULT_TOKENIZER

if TYPE_CHECKING:
    from t2t_repro.runs import TranslatingSystem

_DIGITS = 9  # digits after the decimal point
_ROUNDING_ERROR = 1e-14  # sums of floats, such as 100.00000000000004
_LABELS = {"bleu": "BLEU", "bleu_lowercase": "BLEU, lower-cased", "chrf": "chrF2"}
_ALWAYS_SHOWN = ("beam_size", "alpha")  # settings of the search


@dataclasses.dataclass(frozen=True)
class Scored:
    """Scored translations.

    Attributes:
        report: Values of the JSON object: the scores, and how they were made.
        hypotheses: Translations.
        references: One reference per translation.
        sources: One source per translation, if they are known.
        system: The system that translated, if it is known.
        tokenizer: sacreBLEU's tokenizer.
    """

    report: dict[str, Any]
    hypotheses: Sequence[str]
    references: Sequence[str]
    sources: Sequence[str] | None = None
    system: TranslatingSystem | None = None
    tokenizer: str = DEFAULT_TOKENIZER


def reports() -> list[ModuleType]:
    """Return the modules of the features' reports."""
    return [*modules("reports").values()]


def wants_report(args: argparse.Namespace) -> bool:
    """Return whether the user asked for a report."""
    return any(report.is_wanted(args) for report in reports())


def report_flags() -> str:
    """Return the flags of all reports, for messages."""
    return " or ".join(f"--{flag}" for report in reports() for flag in report.FLAGS)


def show_report(args: argparse.Namespace, scored: Scored) -> None:
    """Print the reports that the user asked for, or else the scores.

    Args:
        args: Flags of the command.
        scored: The scored translations.

    Raises:
        UserError: If a report cannot be made.
    """
    wanted = [report for report in reports() if report.is_wanted(args)]
    for report in wanted:
        report.show(args, scored)
    if not wanted:
        print_scores(scored.report)


def print_scores(report: dict[str, Any]) -> None:
    """Print scores: a table on a terminal, JSON elsewhere."""
    print(*(report_lines(report) if on_terminal() else [scores_json(report)]), sep="\n")


def scores_json(values: Any) -> str:
    """Return scores as JSON, without the rounding errors of floats."""
    return json.dumps(_round(values), indent=2, ensure_ascii=False)


def _round(value: Any) -> Any:
    if isinstance(value, float):
        short = round(value, _DIGITS)
        is_equal = math.isclose(value, short, rel_tol=_ROUNDING_ERROR)
        return short if is_equal else value
    if isinstance(value, Mapping):
        return {name: _round(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_round(part) for part in value]
    return value


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the report of `t2t evaluate` as two tables: scores, and their origin.

    Args:
        report: Values of the JSON object.
    """
    scores, origin = [], []
    for name, value in report.items():
        label = _LABELS.get(name, name.replace("_", " "))
        if isinstance(value, Mapping) and "signature" in value:
            scores.append((label, f"{value['value']:.2f}", value["signature"]))
        elif isinstance(value, float):
            scores.append((label, f"{value:.2f}", ""))
        elif isinstance(value, int):
            scores.append((label, f"{value:,}", ""))
        elif value:
            origin.append((label, printable(_text(name, value))))
    return [*aligned(scores, right=(1,)), "", *aligned(origin)]


def _text(name: str, value: Any) -> str:
    if name == "decode_hparams":
        value = {
            setting: given
            for setting, given in value.items()
            if setting in _ALWAYS_SHOWN or given != DecodeHParams.about(setting).default
        }
    if isinstance(value, Mapping):
        return ", ".join(f"{part}={number}" for part, number in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
