"""Scores of a system over its seeds, as texts of the pages of results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from t2t_repro.features.reproduction.report_writer import mean_and_spread
from t2t_repro.features.reproduction.result_files import NOT_YET, Result

# Score -> its name in the template.
SCORES = {
    "perplexity (dev)": "perplexity",
    "BLEU (dev)": "dev",
    "BLEU (test)": "test",
}


def by_seed(
    results: Sequence[Result], system: str, score: str, scale: str = "small"
) -> dict[int, float]:
    """Return the scores of a system at a scale, by seed."""
    return {
        result.seed: result.scores[score]
        for result in results
        if result.system == system and result.scale == scale
        if score in result.scores
    }


def spread(results: Sequence[Result], system: str) -> dict[str, str]:
    """Describe the scores of a system at the small scale.

    Returns:
        For each score, the mean with the standard deviation of several seeds; and the
        number of seeds.
    """
    texts = {
        name: mean_and_spread([*by_seed(results, system, score).values()], 1)
        for score, name in SCORES.items()
    }
    return texts | {"seeds": str(len(by_seed(results, system, "BLEU (dev)")))}


def long_nll(results: Sequence[Result], system: str) -> str:
    """Return `mean_text` of the dev nll of a system at the long scale."""
    return mean_text([*by_seed(results, system, "nll (dev)", "long").values()], 3)


def mean_text(values: Sequence[float], digits: int) -> str:
    """Write the mean over seeds, their standard deviation and number.

    Args:
        values: Scores, one per seed.
        digits: Digits after the point.

    Returns:
        The text, or "not yet measured" without any score.
    """
    if not values:
        return NOT_YET
    return f"{mean_and_spread(values, digits)} ({number_text(values)})"


def gap_text(gaps: Sequence[float], digits: int) -> str:
    """Write the differences between runs of two systems with the same seeds.

    Args:
        gaps: Differences, one per seed.
        digits: Digits after the point.

    Returns:
        Their mean with the range over the seeds, or "not yet measured" without any.
    """
    if not gaps:
        return NOT_YET
    mean, low, high = (
        f"{x:+.{digits}f}" for x in (statistics.mean(gaps), min(gaps), max(gaps))
    )
    seeds = (
        f"{number_text(gaps)}: {low} to {high}" if len(gaps) > 1 else number_text(gaps)
    )
    return f"{mean} ({seeds})"


def seed_gaps(results: Sequence[Result], system: str, reference: str) -> dict[str, str]:
    """Write the differences of one system from another by BLEU, seed by seed.

    Returns:
        `gap_text` by "dev" and "test".
    """
    texts = {}
    for score in ("BLEU (dev)", "BLEU (test)"):
        own, other = (by_seed(results, x, score) for x in (system, reference))
        gaps = [own[seed] - other[seed] for seed in own.keys() & other.keys()]
        texts[SCORES[score]] = gap_text(gaps, 1)
    return texts


def number_text(values: Sequence[object]) -> str:
    """Write the number of seeds of values, one per seed."""
    return "one seed" if len(values) == 1 else f"{len(values)} seeds"
