"""Numbers that the page of results derives from result files."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from t2t_repro.reproduction.agreement import pooled_deviation
from t2t_repro.reproduction.permutation import permutation_test, sign_flip_test
from t2t_repro.reproduction.results import Result

# Score -> its name in the template.
SCORES = {
    "perplexity (dev)": "perplexity",
    "BLEU (dev)": "dev",
    "BLEU (test)": "test",
}
# Half of the 95 % interval of a normal distribution, in standard deviations.
NORMAL_95 = 1.96


def by_seed(results: Sequence[Result], system: str, score: str) -> dict[int, float]:
    """Return the scores of a system at the small scale, by seed."""
    return {
        result.seed: result.scores[score]
        for result in results
        if result.system == system and result.scale == "small"
        if score in result.scores
    }


def spread(results: Sequence[Result], system: str) -> dict[str, float]:
    """Describe the scores of a system over its seeds.

    Returns:
        For each score, its lowest and highest value, standard deviation, and the
        smallest difference between two single runs that is beyond 95 % of the noise.
    """
    numbers: dict[str, float] = {}
    for score, name in SCORES.items():
        values = list(by_seed(results, system, score).values())
        if not values:
            continue
        numbers |= {f"{name}_low": min(values), f"{name}_high": max(values)}
        deviation = pooled_deviation([values])
        if deviation is not None:
            numbers |= {
                f"{name}_deviation": deviation,
                f"{name}_threshold": NORMAL_95 * math.sqrt(2) * deviation,
            }
    return numbers | {"seeds": len(by_seed(results, system, "BLEU (dev)"))}


def difference(results: Sequence[Result], first: str, second: str) -> dict[str, float]:
    """Describe the difference between two systems, first minus second.

    Returns:
        For each score, the difference between the means, its standard error, and the
        p-values of a permutation test and of a test of the differences per seed.
    """
    numbers: dict[str, float] = {}
    for score, name in SCORES.items():
        one, other = by_seed(results, first, score), by_seed(results, second, score)
        both = sorted(one.keys() & other.keys())
        groups = list(one.values()), list(other.values())
        error = math.sqrt(sum(statistics.variance(x) / len(x) for x in groups))
        numbers |= {
            name: statistics.mean(groups[0]) - statistics.mean(groups[1]),
            f"{name}_error": error,
            f"{name}_p": permutation_test(*groups),
            f"{name}_paired_p": sign_flip_test([one[s] - other[s] for s in both]),
            "seeds": len(both),
            "smallest_paired_p": 2 / 2 ** len(both),
        }
    return numbers
