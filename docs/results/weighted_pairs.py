"""The Transformer-preserving reading beside the Transformer, seed by seed.

The other comparisons take the noise from all rows. These take the runs of two rows, so
they show what depends on that choice.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from results import form_runs, peaks
from results.additive_model import Scores
from results.form_differences import NAMES, difference_text
from results.form_runs import BLEU, CONTROL, PLAIN, WEIGHTED, Repeat
from t2t_repro.features.reproduction.order_agreement import decimals
from t2t_repro.features.reproduction.result_files import NOT_YET, Result, averaged_score

# The rows that we had trained, with one seed on a CPU, when we chose the default.
_SEEN_ROWS = (
    PLAIN,
    WEIGHTED,
    form_runs.EQUATION,
    "around_near_uniform",
    "shared",
    "per_branch",
)
_SEEN_BLOCK = (False, 1)
# Checkpoints whose translations have a score, and the peaks of the learning rate.
_PAIRS = {
    "last": (BLEU, ("own", "twice")),
    "average_own": (averaged_score(BLEU), ("own",)),
    "average_twice": (averaged_score(BLEU), ("twice",)),
}


def values(
    results: Sequence[Result], repeats: Sequence[Repeat], others: Sequence[Result]
) -> dict[str, dict[str, str]]:
    """Return what the page says of these comparisons.

    Args:
        results: Results of any systems.
        repeats: More runs of them.
        others: Results at other peaks of the learning rate.

    Returns:
        "cpu_pairs" and "unseen": differences from the Transformer with attention
        dropout by the names in `NAMES`, of the runs on CPUs alone and without the runs
        that we had seen when we chose the reading; "printed": its "BLEU" minus that of
        the Transformer's averaged checkpoints; "lower": how many of the CPU runs have
        a lower BLEU, for the "last" checkpoint at two peaks, and for the average at
        either.
    """

    def difference(select: Callable[[Scores], Scores]) -> dict[str, str]:
        return {
            short: difference_text(
                select(form_runs.scores_by_block(results, score, repeats)),
                score,
                WEIGHTED,
                CONTROL,
            )
            for score, short in NAMES.items()
        }

    return {
        "cpu_pairs": difference(_cpu_pairs),
        "unseen": difference(_without_seen_runs),
        "printed": {"BLEU": printed_comparison(results)},
        "lower": {
            name: lower_pairs(results, repeats, others, *pairs)
            for name, pairs in _PAIRS.items()
        },
    }


def _without_seen_runs(scores: Scores) -> Scores:
    """Leave out the runs that we had seen when we chose the reading."""
    seen = [form_runs.system_of(name) for name in _SEEN_ROWS]
    return {
        system: {
            block: score
            for block, score in own.items()
            if system not in seen or block != _SEEN_BLOCK
        }
        for system, own in scores.items()
    }


def _cpu_pairs(scores: Scores) -> Scores:
    """Return the scores of both rows in the blocks on CPUs that both have."""
    return _in_shared_blocks(
        {
            system: {
                x: value for x, value in scores.get(system, {}).items() if not x[0]
            }
            for system in map(form_runs.system_of, (WEIGHTED, CONTROL))
        }
    )


def printed_comparison(results: Sequence[Result]) -> str:
    """Compare as in the table of newstest2014: only the Transformer is averaged."""
    scores = {}
    for name, score in ((WEIGHTED, BLEU), (PLAIN, averaged_score(BLEU))):
        system = form_runs.system_of(name)
        of_all = form_runs.scores_by_block(results, score, ())
        scores[system] = of_all.get(system, {})
    return difference_text(_in_shared_blocks(scores), BLEU, WEIGHTED, PLAIN)


def _in_shared_blocks(scores: Scores) -> Scores:
    """Leave out the blocks that not all systems have."""
    return {
        system: {
            block: score
            for block, score in own.items()
            if all(block in other for other in scores.values())
        }
        for system, own in scores.items()
    }


def lower_pairs(
    results: Sequence[Result],
    repeats: Sequence[Repeat],
    others: Sequence[Result],
    score: str,
    peak_names: Sequence[str],
) -> str:
    """Say how many runs on CPUs score lower than the Transformer with equal dropout.

    Args:
        results: Results of any systems.
        repeats: More runs of them.
        others: Results at other peaks of the learning rate.
        score: Name of the score.
        peak_names: Names of peaks in `peaks.scores_by_peak`.

    Returns:
        The number of pairs with a lower score, of all pairs, and the mean difference;
        or "not yet measured". A pair has one seed and one peak.
    """
    by_peak = peaks.scores_by_peak(results, repeats, others, score)
    gaps = []
    for peak in peak_names:
        own, other = (
            by_peak[peak][form_runs.system_of(name)] for name in (WEIGHTED, CONTROL)
        )
        gaps += [own[seed] - other[seed] for seed in own.keys() & other.keys()]
    if not gaps:
        return NOT_YET
    lower = sum(gap < 0 for gap in gaps)
    mean = f"{statistics.mean(gaps):+.{decimals(score)}f}"
    return f"{lower} of {len(gaps)} pairs (mean difference {mean})"
