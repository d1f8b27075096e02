"""Comparisons of systems as a table, in plain text or Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_repro.features.scores.significance import Comparison
from t2t_repro.text_tables import aligned, markdown

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
        *_several(found),
        *(f"{metric}: {signature}" for metric, signature in signatures.items()),
    ]


def _several(found: Sequence[Comparison]) -> list[str]:
    """Warn of several comparisons, of which one may be significant by chance."""
    count = len(_systems(found)) - 1
    if count < 2:
        return []
    return [
        f"p is not corrected for {count} comparisons: by Bonferroni, look for p < "
        f"{SIGNIFICANT / count:.4f}."
    ]
