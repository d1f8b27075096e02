"""Table of the readings of the Weighted Transformer, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from t2t_repro.reproduction.agreement import decimals, pooled_deviation
from t2t_repro.reproduction.convergence import relative_updates
from t2t_repro.reproduction.curves import Curve
from t2t_repro.reproduction.lookup import find_table
from t2t_repro.reproduction.report import mean_and_spread
from t2t_repro.reproduction.results import NOT_YET, Result
from t2t_repro.reproduction.t_test import t_test
from t2t_repro.text_tables import markdown

SCORES = {
    "nll (dev)": "dev nll",
    "BLEU (dev)": "dev BLEU",
    "BLEU (test)": "test2016 BLEU",
    "BLEU (dev+test)": "both",
}
NLL, BLEU = "nll (dev)", "BLEU (dev+test)"
_HEADINGS = (
    *("row", "system", "changes", *SCORES.values(), "seeds"),
    *("nll, p", "both, p", "updates", "M kappa, M alpha"),
)


def forms(results: Sequence[Result], curves: Sequence[Curve]) -> str:
    """Return the readings at the long scale, measured or not, as a table.

    Args:
        results: Results of any systems.
        curves: Courses of trainings; those with the name of a system belong to it.
    """
    rows = find_table("forms").rows
    measured = {
        str(row.system): [
            x for x in results if (x.system, x.scale) == (row.system, "long")
        ]
        for row in rows
    }
    lines = []
    for row in rows:
        changes = row.hparams.replace(",", ", ")
        first = [f"`forms/{row.name}`", row.label, f"`{changes}`" if changes else ""]
        system = str(row.system)
        if not measured[system]:
            lines.append([*first, NOT_YET, *[""] * (len(_HEADINGS) - len(first) - 1)])
            continue
        lines.append(
            [
                *first,
                *_scores(measured[system]),
                *_p_values(system, str(rows[0].system), measured),
                _updates(system, str(rows[0].system), curves),
                _weights(system, curves),
            ]
        )
    return "\n".join(markdown([_HEADINGS, *lines]))


def _scores(results: Sequence[Result]) -> list[str]:
    """Return the mean and spread of each score, and the seeds."""
    return [
        *(
            mean_and_spread([x.scores[name] for x in results], decimals(name))
            for name in SCORES
        ),
        ", ".join(str(result.seed) for result in results),
    ]


def _p_values(
    system: str, reference: str, measured: Mapping[str, Sequence[Result]]
) -> Iterator[str]:
    """Yield the p-values of the differences of nll and BLEU from the reference."""
    for score in (NLL, BLEU):
        groups = {
            name: [x.scores[score] for x in results]
            for name, results in measured.items()
        }
        own, other = groups[system], groups[reference]
        deviation, degrees = _noise(list(groups.values()))
        if system == reference or not other or deviation is None:
            yield ""
        else:
            yield f"{t_test(own, other, deviation, degrees):.2g}"


def _noise(groups: Sequence[Sequence[float]]) -> tuple[float | None, int]:
    """Return the deviation between seeds of the same system, and its degrees."""
    seeded = [group for group in groups if group]
    degrees = sum(len(group) - 1 for group in seeded)
    return pooled_deviation(seeded), degrees


def _updates(system: str, reference: str, curves: Sequence[Curve]) -> str:
    """Return the mean of the relative updates over the seeds that both have."""
    own, other = (
        {curve.seed: curve for curve in curves if curve.name == name}
        for name in (system, reference)
    )
    seeds = own.keys() & other.keys()
    if system == reference or not seeds:
        return ""
    ratios = [relative_updates(own[seed], other[seed]) for seed in seeds]
    return f"{statistics.mean(ratios):.2f}"


def _weights(system: str, curves: Sequence[Curve]) -> str:
    """Return the smallest and largest kappa or alpha at the end, times M."""
    found = [
        len(layer) * values[-1]
        for curve in curves
        if curve.name == system
        for layer in curve.branches_by_layer().values()
        for values in layer
    ]
    return f"{min(found):.2f} to {max(found):.2f}" if found else ""
