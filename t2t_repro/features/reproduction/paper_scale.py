"""The papers' recipes: WMT 2014, 8 GPUs with 3,125 tokens each."""

from __future__ import annotations

from t2t_repro.errors import UsageError
from t2t_repro.features.reproduction.recipes import Recipe
from t2t_repro.features.reproduction.tables import Row, Table

# Problem by target language.
PROBLEMS = {"de": "translate_ende_wmt14", "fr": "translate_enfr_wmt14"}
SECONDS_BETWEEN_CHECKPOINTS = 600  # section 6.1


def recipe_of(table: Table, row: Row) -> Recipe:
    """Return the recipe with which the paper trained and scored a row.

    Args:
        table: Its table.
        row: A row with an hparams set.

    Raises:
        UsageError: If the paper does not give the number of steps.
    """
    if row.train_steps is None:
        raise UsageError(
            f"{table.name}/{row.name}: the paper does not give the number of training "
            f"steps. `t2t show {row.hparams_set}` has the command."
        )
    return Recipe(
        problem=PROBLEMS[table.target_language],
        train_steps=row.train_steps,
        splits=(table.split,),
        hparams_set=str(row.hparams_set),
        hparams=row.hparams,
        average_last=row.average_last,
        save_checkpoints_secs=SECONDS_BETWEEN_CHECKPOINTS if row.average_last else None,
    )
