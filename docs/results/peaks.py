"""Scores of the main readings at other peaks of the learning rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from results import form_runs, seeds
from results.additive_model import Scores
from results.form_differences import NAMES, difference_text
from results.form_runs import Repeat
from t2t_repro.features.reproduction.order_agreement import decimals
from t2t_repro.features.reproduction.result_files import NOT_YET, Result, results_in
from t2t_repro.text_tables import markdown

ROWS = (form_runs.CONTROL, form_runs.WEIGHTED, form_runs.EQUATION)
# Results of SYSTEM with another peak have the name SYSTEM and one of these.
_SUFFIXES = {"half": "-peak0.5", "own": "", "twice": "-peak2"}
_HEADINGS = (
    "row",
    "score",
    "half the peak",
    "the peak of all rows",
    "twice the peak",
)


@cache
def recorded_runs() -> tuple[Result, ...]:
    """Return the results of the repository at other peaks, which are a CPU's."""
    return results_in(resources.files("results") / "data/peaks")


def scores_by_peak(
    results: Sequence[Result],
    repeats: Sequence[Repeat],
    others: Sequence[Result],
    score: str,
) -> dict[str, Scores]:
    """Return a score of the rows' runs on CPUs.

    Args:
        results: Results of any systems.
        repeats: More runs of them.
        others: Results at other peaks.
        score: Name of the score.

    Returns:
        "half", "own" or "twice" -> system -> seed -> score.
    """
    runs = [Repeat(x.system, x.seed, x.scores) for x in others]
    blocks = form_runs.scores_by_block(results, score, repeats)
    for system, own in blocks.items():
        for (accelerated, seed), value in own.items():
            if not accelerated:
                runs.append(Repeat(system, seed, {score: value}))
    systems = [form_runs.system_of(name) for name in ROWS]
    return {
        peak: {
            system: {
                run.seed: run.scores[score]
                for run in runs
                if run.system == f"{system}{suffix}"
            }
            for system in systems
        }
        for peak, suffix in _SUFFIXES.items()
    }


def table(
    results: Sequence[Result], repeats: Sequence[Repeat], others: Sequence[Result]
) -> str:
    """Return the means of `scores_by_peak` as a table."""
    lines: list[Sequence[str]] = [_HEADINGS]
    for score in NAMES:
        peaks = scores_by_peak(results, repeats, others, score).values()
        for name in ROWS:
            cells = [_mean(scores, score, name) for scores in peaks]
            lines.append([f"`forms/{name}`", score, *cells])
    return "\n".join(markdown(lines))


def values(
    results: Sequence[Result], repeats: Sequence[Repeat], others: Sequence[Result]
) -> dict[str, dict[str, str]]:
    """Return what the page says of the dev nll and of BLEU at a peak.

    Returns:
        Names such as "twice_weighted" and "twice_weighted_gap" -> "nll" and "BLEU" ->
        the mean of a row, or its difference from the Transformer with the same dropout
        and peak, with an interval if there are enough seeds.
    """
    found: dict[str, dict[str, str]] = {}
    for score, short in NAMES.items():
        by_peak = scores_by_peak(results, repeats, others, score)
        for peak, scores in by_peak.items():
            for name in ROWS:
                own = found.setdefault(f"{peak}_{name}", {})
                own[short] = _mean(scores, score, name)
            for name in ROWS[1:]:
                text = _gap(scores, score, name)
                found.setdefault(f"{peak}_{name}_gap", {})[short] = text
    return found


def _gap(scores: Scores, score: str, name: str) -> str:
    """Return the difference of a reading from the Transformer with equal dropout."""
    own, other = (scores[form_runs.system_of(row)] for row in (name, form_runs.CONTROL))
    gaps = [own[seed] - other[seed] for seed in own.keys() & other.keys()]
    by_seed = seeds.gap_text(gaps, decimals(score))
    tested = difference_text(scores, score, name, form_runs.CONTROL)
    if tested == NOT_YET:
        return by_seed
    _, _, interval = tested.partition("(")
    return f"{by_seed[:-1]}; {interval}"


def _mean(scores: Scores, score: str, name: str) -> str:
    own = [*scores[form_runs.system_of(name)].values()]
    return seeds.mean_text(own, decimals(score))
