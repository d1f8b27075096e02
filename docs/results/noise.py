"""Estimate the noise between seeds, and find the rows that differ beyond it."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

from scipy import stats

from results.derived import PLAIN
from results.seeds import by_seed
from t2t_repro.features.reproduction.order_agreement import (
    COVERAGE,
    LEAST_DIFFERENCES,
    OrderTest,
    compared_scores,
    order_of,
    p_value_text,
    pooled_deviation,
    scores_of,
)
from t2t_repro.features.reproduction.paper_tables import Row, find_table
from t2t_repro.features.reproduction.result_files import Result

PERPLEXITY, BLEU = "perplexity (dev)", "BLEU (dev)"


def noise(results: Sequence[Result]) -> dict[str, float]:
    """Describe the noise between the seeds of a system at the small scale.

    It is pooled over all systems with several seeds: of BLEU, and of perplexity in
    percent of it. Systems without a perplexity are left out: they are other systems
    with random or uniform kappa and alpha, not training runs of their own.

    Returns:
        The number of systems and of seeds; for each of the two scores on dev, the
        standard deviation and the smallest difference that is beyond 95 % of the
        noise, between two systems with one seed each and, if `PLAIN` is measured,
        between one seed and the mean of `PLAIN`.
    """
    perplexities = _repeated(results, PERPLEXITY)
    bleu = _repeated(results, BLEU)
    groups = {
        "dev": [bleu[system] for system in perplexities],
        "perplexity": list(map(_in_percent, perplexities.values())),
    }
    seeds = sum(map(len, perplexities.values()))
    numbers: dict[str, float] = {"systems": len(perplexities), "seeds": seeds}
    plain_seeds = len(by_seed(results, PLAIN, PERPLEXITY))
    for name, values in groups.items():
        deviation = pooled_deviation(values)
        if deviation is not None:
            numbers |= {
                f"{name}_deviation": deviation,
                f"{name}_threshold": _threshold(values, 1, 1),
            }
            if plain_seeds:
                limit = _threshold(values, 1, plain_seeds)
                numbers[f"{name}_base_threshold"] = limit
    return numbers


def directions(
    results: Sequence[Result], scale: str, unlike: Sequence[str] = ()
) -> dict[str, str | int]:
    """Say which rows of Table 3 differ from its first one as published.

    Counts the rows whose perplexity differs from that of `PLAIN` beyond the noise, and
    whose published perplexity differs from the first row's enough to be an order.

    Args:
        results: Results of any systems.
        scale: "small" or "long".
        unlike: Systems whose seeds differ so much that they do not tell the noise of
            the others.

    Returns:
        "published" and "opposite": names of the rows in either direction; "agreeing"
        and "beyond": the number of the former, and of both.
    """
    repeated = _repeated(results, PERPLEXITY, scale)
    groups = [_in_percent(x) for name, x in repeated.items() if name not in unlike]
    first, *rows = find_table("table3").rows
    plain = _in_percent([*by_seed(results, PLAIN, PERPLEXITY, scale).values()])
    found: dict[bool, list[str]] = {True: [], False: []}
    for row in rows:
        scores = by_seed(results, str(row.system), PERPLEXITY, scale)
        own = _in_percent([*scores.values()])
        printed = _published(row) - _published(first)
        if not own or round(abs(printed), 2) < LEAST_DIFFERENCES["PPL"]:
            continue
        difference = statistics.mean(own) - statistics.mean(plain)
        if abs(difference) > _threshold(groups, len(own), len(plain)):
            found[printed * difference > 0].append(f"`{row.name}`")
    return {
        "published": ", ".join(found[True]),
        "opposite": ", ".join(found[False]),
        "agreeing": len(found[True]),
        "beyond": len(found[True]) + len(found[False]),
    }


def table3_order(
    results: Sequence[Result], scale: str, rows: Sequence[str]
) -> dict[str, float | str]:
    """Compare the order of rows of Table 3 at a scale with the published one.

    Args:
        results: Results of any systems.
        scale: "small" or "long".
        rows: Names of the rows.

    Returns:
        For "ppl" and "bleu", published columns, the number of "same" pairs of rows by
        the score of the last checkpoint, of "pairs", and p, by names such as
        "ppl_same"; for "bleu_dev", the same by BLEU on dev alone, which is what the
        paper has; and the number of "rows" with results.
    """
    table = find_table("table3")
    chosen = dataclasses.replace(table, rows=[x for x in table.rows if x.name in rows])
    of_scale = [result for result in results if result.scale == scale]
    measured = {result.system for result in of_scale}
    numbers: dict[str, float | str] = {
        "rows": sum(row.system in measured for row in chosen.rows)
    }
    for name, column, score in (
        ("ppl", "PPL", compared_scores(table, "PPL", scale)[0]),
        ("bleu", "BLEU", compared_scores(table, "BLEU", scale)[0]),
        ("bleu_dev", "BLEU", BLEU),
    ):
        scores = scores_of(chosen, column, score, of_scale)
        if len({row.published for row in scores}) > 1:
            numbers |= _counts(name, order_of(scores, column))
    return numbers


def _counts(name: str, test: OrderTest) -> dict[str, int | str]:
    """Return the pairs in order, all pairs and p, by names that begin alike."""
    return {
        f"{name}_same": test.same,
        f"{name}_pairs": test.pairs,
        f"{name}_p": p_value_text(test.p_value, 3),
    }


def _threshold(groups: Sequence[Sequence[float]], first: int, second: int) -> float:
    """Return the smallest difference between two means that is beyond the noise.

    Args:
        groups: Scores of the seeds of each system.
        first: Number of seeds of one mean.
        second: Number of seeds of the other.
    """
    degrees = sum(map(len, groups)) - len(groups)
    error = (pooled_deviation(groups) or 0.0) * math.sqrt(1 / first + 1 / second)
    return float(stats.t.ppf((1 + COVERAGE) / 2, degrees)) * error


def _repeated(
    results: Sequence[Result], score: str, scale: str = "small"
) -> dict[str, list[float]]:
    """Return the scores of all systems with several seeds at a scale."""
    systems = dict.fromkeys(result.system for result in results)
    scores = {
        system: [*by_seed(results, system, score, scale).values()] for system in systems
    }
    return {system: values for system, values in scores.items() if len(values) > 1}


def _in_percent(values: Sequence[float]) -> list[float]:
    """Return values whose differences are in percent of the given ones."""
    return [100 * math.log(x) for x in values]


def _published(row: Row) -> float:
    perplexity: Any = row.published["PPL"]
    return float(perplexity)
