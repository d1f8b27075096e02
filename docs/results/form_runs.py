"""The training runs of the readings of the Weighted Transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from results.derived import on_accelerator
from results.measurements import Measurement
from t2t_repro.features.reproduction.paper_tables import Row, find_table
from t2t_repro.features.reproduction.result_files import Result

SCALE = "long"
NLL, BLEU = "nll (dev)", "BLEU (dev+test)"
# The Transformer without branches, and the same with the dropout that branches have.
PLAIN, CONTROL = "transformer", "transformer_attention_dropout"
WEIGHTED = "weighted"  # the present reading


class Repeat(NamedTuple):
    """A training run on a CPU of a system whose results are an accelerator's.

    Attributes:
        system: Name of the system.
        seed: Its seed.
        scores: Measured value by name; only `NLL` and `BLEU` are known.
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


def cpu_repeats(agreement: Measurement) -> list[Repeat]:
    """Read the runs that CPUs made of rows which the accelerator trained."""
    systems = {f"`{row.name}`": str(row.system) for row in rows()}
    columns = agreement.columns("row of forms", "CPU seed", "nll, CPU", "both, CPU")
    return [
        Repeat(systems[name], seed, {NLL: nll, BLEU: bleu})
        for name, seed, nll, bleu in zip(*columns, strict=True)
    ]


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
    """Return a score of every measured system, by block.

    A block is a seed, on CPUs or on the accelerator, which draw other initial weights
    and batches from it.

    Args:
        results: Results of any systems.
        score: Name of the score.
        repeats: More runs of them.
    """
    found = {
        name: {(on_accelerator(x.versions), x.seed): x.scores[score] for x in own}
        for name, own in measured(results).items()
        if own
    }
    for system, seed, scores in repeats:
        if system in found:
            found[system].setdefault((False, seed), scores[score])
    return found
