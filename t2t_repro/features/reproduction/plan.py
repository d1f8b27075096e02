"""Plan of a row's run: its recipe, the rows that share it, and its folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.reproduction import paper_scale, small_scale
from t2t_repro.features.reproduction.commands import commands_of
from t2t_repro.features.reproduction.recipes import Recipe
from t2t_repro.features.reproduction.tables import Row, Table


@dataclass(frozen=True)
class Plan:
    """One training and the rows to score with it.

    Attributes:
        scale: "small", "long" or "paper".
        seed: Random seed of weights, dropout, data order and random branch weights.
        recipe: How to train and score.
        rows: Rows to score.
    """

    scale: str
    seed: int
    recipe: Recipe
    rows: tuple[Row, ...]

    def commands(self) -> list[str]:
        """Return the commands that a user would type, with placeholders for folders."""
        return commands_of(self.recipe, self.rows, self.seed)


def plan_of(table: Table, row: Row, scale: str = "small", seed: int = 1) -> Plan:
    """Return the plan of a row's run.

    Args:
        table: Table of the row.
        row: The row.
        scale: "small", "long" or "paper".
        seed: Random seed.

    Raises:
        UsageError: If the row cannot be trained at this scale.
    """
    if table.task == "layers":
        raise UsageError(
            f"nothing is trained: `t2t reproduce {table.name}/{row.name}` measures it."
        )
    if row.hparams_set is None:
        raise UsageError(
            f"{table.name}/{row.name} is published only: it is not a system of this "
            "package."
        )
    if scale == "paper":
        recipe = paper_scale.recipe_of(table, row)
    else:
        hparams = catalogue.hparams(row.hparams_set)
        recipe = small_scale.recipe_of(table, row, hparams, scale)
    return Plan(scale, seed, recipe, _rows_of_the_training(table, row))


def _rows_of_the_training(table: Table, row: Row) -> tuple[Row, ...]:
    """Return the rows that differ from a row only in their branch weights."""
    if len({each.branch_weights for each in table.rows}) == 1:
        return (row,)
    return tuple(each for each in table.rows if each.hparams_set == row.hparams_set)


@dataclass(frozen=True)
class RunFolders:
    """Folders of a run.

    Attributes:
        data_dir: Folder of the prepared data.
        output_dir: Folder of the training run.
        text_dir: Folder of the raw text, or None if the problem has its own text.
        result_dir: Folder of the result files; None = `output_dir`.
    """

    data_dir: Path
    output_dir: Path
    text_dir: Path | None = None
    result_dir: Path | None = None


def check_folders(plan: Plan, folders: RunFolders) -> None:
    """Check the folders before anything is trained.

    Raises:
        UsageError: If the folder of the text is missing.
        UserError: If the folder of results cannot be written to.
    """
    if plan.recipe.text and folders.text_dir is None:
        raise UsageError(f"text_dir is missing: scale={plan.scale} needs it.")
    if folders.result_dir is not None and not os.access(folders.result_dir, os.W_OK):
        raise UserError(
            f"received result_dir={folders.result_dir}, expected an existing folder "
            "that can be written to."
        )
