"""Numbers about the parsers that the page of results derives from result files."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from results.seeds import by_seed
from t2t_repro.features.reproduction.result_files import Result

GOLD, SILVER = "transformer_parsing_wsj", "transformer_parsing_semi"
# Score -> its name in the template.
SCORES = {"F1 up to 40 words (dev)": "f1_40", "F1 (dev)": "f1"}


def silver_gap(results: Sequence[Result]) -> dict[str, float]:
    """Compare the parser of gold and silver trees with the one of gold trees alone.

    Returns:
        "f1_40" of sentences of up to 40 words and "f1" of all: the difference between
        the means over the seeds, with silver trees minus gold alone. "f1_40_range" and
        "f1_range": the largest difference between seeds of gold alone. "seeds": the
        number of seeds with silver trees.
    """
    numbers: dict[str, float] = {}
    for score, name in SCORES.items():
        gold, silver = (
            list(by_seed(results, system, score).values()) for system in (GOLD, SILVER)
        )
        numbers |= {
            name: statistics.mean(silver) - statistics.mean(gold),
            f"{name}_range": max(gold) - min(gold),
            "seeds": len(silver),
        }
    return numbers
