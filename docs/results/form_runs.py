"""The training runs of the readings of the Weighted Transformer."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from results.curves import Curve
from results.derived import on_accelerator
from results.measurements import Measurement
from t2t_repro.features.reproduction.order_agreement import decimals
from t2t_repro.features.reproduction.paper_tables import Row, find_table
from t2t_repro.features.reproduction.report_writer import mean_and_spread
from t2t_repro.features.reproduction.result_files import Result, results_in
from t2t_repro.text_tables import markdown

SCALE = "long"
NLL, BLEU = "nll (dev)", "BLEU (dev+test)"
# The Transformer without branches, and the same with the dropout that branches have.
PLAIN, CONTROL = "transformer", "transformer_attention_dropout"
# The two main readings: equation (7) as printed, and the one of the sets.
EQUATION, WEIGHTED = "around", "weighted"


class Repeat(NamedTuple):
    """A training run on a CPU of a system whose results are an accelerator's.

    Attributes:
        system: Name of the system.
        seed: Its seed.
        scores: Measured value by name; some runs have `NLL` and `BLEU` alone.
    """

    system: str
    seed: int
    scores: Mapping[str, float]


def rows() -> Sequence[Row]:
    """Return the readings; the first one is the Transformer."""
    return find_table("forms").rows


def system_of(name: str) -> str:
    """Return the system of the row with a name."""
    return next(str(row.system) for row in rows() if row.name == name)


def cpu_curves(curves: Sequence[Curve], name: str) -> dict[int, Curve]:
    """Return the curves of a row's runs on CPUs, by seed."""
    own = f"{system_of(name)}-{SCALE}"
    names = (own, f"{own}-cpu")  # "-cpu": there are runs on an accelerator as well
    return {
        x.seed: x for x in curves if x.name in names and not on_accelerator(x.versions)
    }


def cpu_repeats(agreement: Measurement, recorded: Sequence[Result]) -> list[Repeat]:
    """Return the runs that CPUs made of rows which the accelerator trained.

    Args:
        agreement: The first of these runs, whose outputs no longer exist.
        recorded: The result files of the others.
    """
    systems = {f"`{row.name}`": str(row.system) for row in rows()}
    columns = agreement.columns("row of forms", "CPU seed", "nll, CPU", "both, CPU")
    return [
        Repeat(systems[name], seed, {NLL: nll, BLEU: bleu})
        for name, seed, nll, bleu in zip(*columns, strict=True)
    ] + [Repeat(x.system, x.seed, x.scores) for x in recorded]


@cache
def recorded_repeats() -> tuple[Result, ...]:
    """Return the result files of the repository that repeat an accelerator's rows."""
    return results_in(resources.files("results") / "data/repeats")


def repeats_table(results: Sequence[Result], repeats: Sequence[Repeat]) -> str:
    """Return the scores of the repeats beside the accelerator's, as a table."""
    lines = [["row", "CPU seed", "nll, CPU", "nll, H200", "both, CPU", "both, H200"]]
    for row in rows():
        for repeat in repeats:
            if repeat.system == row.system:
                cells = _repeat_cells(repeat, accelerated_scores(results, repeat))
                lines.append([f"`{row.name}`", str(repeat.seed), *cells])
    return "\n".join(markdown(lines))


def _repeat_cells(repeat: Repeat, others: Mapping[str, list[float]]) -> list[str]:
    cells = []
    for score, own in others.items():
        cells.append(f"{repeat.scores[score]:.{decimals(score)}f}")
        cells.append(mean_and_spread(own, decimals(score)))
    return cells


def accelerated_scores(
    results: Sequence[Result], repeat: Repeat
) -> dict[str, list[float]]:
    """Return nll and BLEU of the accelerator's runs of a repeat's system."""
    own = [
        result
        for result in results
        if (result.system, result.scale) == (repeat.system, SCALE)
        if on_accelerator(result.versions)
    ]
    return {score: [x.scores[score] for x in own] for score in (NLL, BLEU)}


def repeat_gaps(
    results: Sequence[Result], repeats: Sequence[Repeat]
) -> dict[str, float]:
    """Return the mean difference between CPUs and accelerator, CPU minus accelerator.

    Returns:
        "nll" and "bleu", "nll_deviation" and "bleu_deviation" of the differences, and
        "runs": the number of training runs on CPUs.
    """
    numbers: dict[str, float] = {}
    for name, score in (("nll", NLL), ("bleu", BLEU)):
        gaps = [
            repeat.scores[score] - statistics.mean(own)
            for repeat in repeats
            if (own := accelerated_scores(results, repeat)[score])
        ]
        numbers |= {
            name: statistics.mean(gaps),
            f"{name}_deviation": statistics.stdev(gaps),
            "runs": len(gaps),
        }
    return numbers


def measured(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results of each row's system at the long scale."""
    return {
        str(row.system): [
            x for x in results if (x.system, x.scale) == (row.system, SCALE)
        ]
        for row in rows()
    }


def scores_by_block(
    results: Sequence[Result], score: str, repeats: Sequence[Repeat]
) -> dict[str, dict[tuple[bool, int], float]]:
    """Return a score of every measured system, by block, of the runs that have it.

    A block is a seed, on CPUs or on the accelerator, which draw other initial weights
    and batches from it.

    Args:
        results: Results of any systems.
        score: Name of the score.
        repeats: More runs of them.
    """
    found = {
        name: {
            (on_accelerator(x.versions), x.seed): x.scores[score]
            for x in own
            if score in x.scores
        }
        for name, own in measured(results).items()
        if own
    }
    for system, seed, scores in repeats:
        if system in found and score in scores:
            found[system].setdefault((False, seed), scores[score])
    return found
