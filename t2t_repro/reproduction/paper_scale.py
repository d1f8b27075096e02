"""The papers' own recipes: WMT 2014 English to German, 8 GPUs of 3,125 tokens each."""

from __future__ import annotations

from t2t_repro.errors import UsageError
from t2t_repro.reproduction.recipes import Recipe
from t2t_repro.reproduction.tables import Row, Table

PROBLEM = "translate_ende_wmt14"
SECONDS_BETWEEN_CHECKPOINTS = 600  # section 6.1


def recipe_of(table: Table, row: Row) -> Recipe:
    """Return how the paper trained and scored a row, English to German.

    Args:
        table: Its table.
        row: A row with a set.

    Raises:
        UsageError: If the paper does not say for how many steps.
    """
    if row.train_steps is None:
        raise UsageError(
            f"{table.name}/{row.name}: the paper does not say for how many steps it "
            f"was trained. `t2t show {row.hparams_set}` has the command."
        )
    every = ("--save_checkpoints_secs", str(SECONDS_BETWEEN_CHECKPOINTS))
    return Recipe(
        problem=PROBLEM,
        train_steps=row.train_steps,
        splits=(table.split,),
        hparams_set=str(row.hparams_set),
        average_last=row.average_last,
        checkpoints=every if row.average_last else None,
    )
