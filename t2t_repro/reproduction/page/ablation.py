"""Table of the readings of the Weighted Transformer, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from t2t_repro.reproduction.additive_model import (
    Scores,
    adjusted,
    noise_degrees,
    p_values,
)
from t2t_repro.reproduction.agreement import decimals, p_value_cell
from t2t_repro.reproduction.convergence import branch_spreads, relative_updates
from t2t_repro.reproduction.curves import Curve
from t2t_repro.reproduction.lookup import find_table
from t2t_repro.reproduction.measurements import Measurement
from t2t_repro.reproduction.page.derived import on_accelerator
from t2t_repro.reproduction.report import mean_and_spread
from t2t_repro.reproduction.results import NOT_YET, Result, averaged_score
from t2t_repro.reproduction.tables import Row
from t2t_repro.text_tables import markdown

NLL, BLEU = "nll (dev)", "BLEU (dev+test)"
SCORES = {
    NLL: "dev nll",
    "BLEU (dev)": "dev BLEU",
    "BLEU (test)": "test2016 BLEU",
    BLEU: "both",
    averaged_score(NLL): "dev nll, average",
    averaged_score(BLEU): "both, average",
}
TESTED = {NLL: "nll, p", BLEU: "both, p"}
SCALE = "long"
LARGEST_RATIO = 100  # a branch may be switched off
LEVEL = 0.05  # of all comparisons with a score together
MIN_DEGREES = 4  # of freedom of the noise; with fewer, hardly any difference is found
_HEADINGS = (
    *("row", "system", "changes", *SCORES.values(), "seeds"),
    *(*TESTED.values(), "updates", "spread"),
)


class Repeat(NamedTuple):
    """A training run on a CPU of a system whose results are an accelerator's.

    Attributes:
        system: Name of the system.
        seed: Its seed.
        scores: Measured value by name; only those of `TESTED` are known.
    """

    system: str
    seed: int
    scores: Mapping[str, float]


def cpu_repeats(agreement: Measurement) -> list[Repeat]:
    """Read the runs that CPUs made of rows which the accelerator trained."""
    systems = {f"`{row.name}`": str(row.system) for row in find_table("forms").rows}
    columns = agreement.columns("row of forms", "CPU seed", "nll, CPU", "both, CPU")
    return [
        Repeat(systems[name], seed, {NLL: nll, BLEU: bleu})
        for name, seed, nll, bleu in zip(*columns, strict=True)
    ]


def forms(
    results: Sequence[Result], curves: Sequence[Curve], repeats: Sequence[Repeat] = ()
) -> str:
    """Return the readings at the long scale, measured or not, as a table.

    Args:
        results: Results of any systems.
        curves: Learning curves; those named SYSTEM-long belong to a system.
        repeats: More runs for the p-values alone.
    """
    rows = find_table("forms").rows
    measured = _measured(rows, results)
    reference = str(rows[0].system)
    tests = [
        _p_values(_scores_by_block(measured, score, repeats), reference)
        for score in TESTED
    ]
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
                *(column.get(system, "") for column in tests),
                _updates(system, reference, curves),
                _spread(system, curves),
            ]
        )
    return "\n".join(markdown(_without_empty_columns([_HEADINGS, *lines])))


def comparison(results: Sequence[Result], repeats: Sequence[Repeat] = ()) -> str:
    """Say which readings the noise tells from the first row, the Transformer.

    Args:
        results: Results of any systems.
        repeats: More runs of them.

    Returns:
        A sentence per score of `TESTED`, or one about the seeds that are missing.
    """
    rows = find_table("forms").rows
    measured = _measured(rows, results)
    names = {str(row.system): f"`{row.name}`" for row in rows}
    sentences = [
        _compared(
            name,
            _scores_by_block(measured, score, repeats),
            str(rows[0].system),
            names,
        )
        for score, name in (
            (NLL, "dev nll"),
            (BLEU, "BLEU of dev and test2016 together"),
        )
    ]
    if all(sentences):
        return " ".join(sentences)
    return _too_few_seeds(_scores_by_block(measured, NLL, repeats))


def _compared(
    score: str,
    scores: Scores,
    reference: str,
    names: Mapping[str, str],
) -> str:
    """Write which systems differ from the reference, or "" without any p-value.

    Args:
        score: Name of the score for people.
        scores: System -> block -> score.
        reference: System to compare with.
        names: Name of each system for people.
    """
    tested = adjusted(_tested(scores, reference))
    if not tested:
        return ""
    differ = [names[name] for name in scores if tested.get(name, 1.0) <= LEVEL]
    others = [names[name] for name in scores if tested.get(name, 0.0) > LEVEL]
    parts = [f"differ from the Transformer: {', '.join(differ) or 'none'}"]
    if others:
        parts.append(f"cannot be told from it: {', '.join(others)}")
    return f"By {score}, these rows {'; these '.join(parts)}."


def _too_few_seeds(scores: Scores) -> str:
    degrees = noise_degrees(scores)
    return (
        f"Too few rows have several seeds: the noise has {degrees} degree(s) of "
        f"freedom, and this page gives p from {MIN_DEGREES} on."
    )


def _tested(scores: Scores, reference: str) -> dict[str, float]:
    """Return p-values of differences from the reference, or none without enough seeds.

    Args:
        scores: System -> block -> score.
        reference: System to compare with.
    """
    if reference not in scores or noise_degrees(scores) < MIN_DEGREES:
        return {}
    return p_values(scores, reference)


def _measured(
    rows: Sequence[Row], results: Sequence[Result]
) -> dict[str, list[Result]]:
    """Return the results of each row's system at the long scale."""
    return {
        str(row.system): [
            x for x in results if (x.system, x.scale) == (row.system, SCALE)
        ]
        for row in rows
    }


def _scores_by_block(
    measured: Mapping[str, Sequence[Result]], score: str, repeats: Sequence[Repeat]
) -> dict[str, dict[tuple[bool, int], float]]:
    """Return a score of every measured system, by block.

    A block is a seed, on CPUs or on the accelerator, which draw other initial weights
    and batches from it.
    """
    found = {
        name: {(on_accelerator(x), x.seed): x.scores[score] for x in results}
        for name, results in measured.items()
        if results
    }
    for system, seed, scores in repeats:
        if system in found:
            found[system].setdefault((False, seed), scores[score])
    return found


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Leave out the columns of a table that hold a heading alone."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return [list(row) for row in zip(*columns, strict=True)]


def _scores(results: Sequence[Result]) -> list[str]:
    """Return the mean and spread of each score, and the number of seeds."""
    return [
        *(
            mean_and_spread(
                [x.scores[name] for x in results if name in x.scores], decimals(name)
            )
            for name in SCORES
        ),
        str(len(results)),
    ]


def _p_values(scores: Scores, reference: str) -> dict[str, str]:
    """Return the p-values of differences from the reference, as text."""
    tested = _tested(scores, reference)
    return {name: p_value_cell(p_value, 3) for name, p_value in tested.items()}


def _updates(system: str, reference: str, curves: Sequence[Curve]) -> str:
    """Return the mean of the relative updates over the seeds that both have."""
    own, other = (
        {curve.seed: curve for curve in curves if curve.name == f"{name}-{SCALE}"}
        for name in (system, reference)
    )
    seeds = own.keys() & other.keys()
    if system == reference or not seeds:
        return ""
    ratios = [relative_updates(own[seed], other[seed]) for seed in seeds]
    return f"{statistics.geometric_mean(ratios):.2f}"


def _spread(system: str, curves: Sequence[Curve]) -> str:
    """Return the median and the largest spread of the branch weights at the end."""
    found = [
        ratio
        for curve in curves
        if curve.name == f"{system}-{SCALE}"
        for ratio in branch_spreads(curve)
    ]
    if not found:
        return ""
    return f"{_ratio_text(statistics.median(found))}, {_ratio_text(max(found))}"


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio <= LARGEST_RATIO else f"> {LARGEST_RATIO}"
