"""Scores as JSON for programs, and as a table for people at a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from t2t_repro.metrics.card.text import printable
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text_tables import aligned

_DIGITS = 9  # after the point
_ROUNDING_ERROR = 1e-14  # of sums of floats, such as 100.00000000000004
_LABELS = {"bleu": "BLEU", "bleu_lowercase": "BLEU, lower-cased", "chrf": "chrF2"}
_ALWAYS_SHOWN = ("beam_size", "alpha")  # settings of the search


def scores_json(values: Any) -> str:
    """Return scores as JSON, without the rounding errors of floats."""
    return json.dumps(_rounded(values), indent=2, ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        short = round(value, _DIGITS)
        is_equal = math.isclose(value, short, rel_tol=_ROUNDING_ERROR)
        return short if is_equal else value
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
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
            if setting in _ALWAYS_SHOWN or given != DecodeHParams.default_of(setting)
        }
    if isinstance(value, Mapping):
        return ", ".join(f"{part}={number}" for part, number in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
