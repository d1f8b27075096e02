"""Plan of a row's run: its commands, the rows that share it, and its folders."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.reproduction import recipes
from t2t_repro.features.reproduction.paper_tables import Row, Table
from t2t_repro.features.reproduction.recipes import Recipe

# Placeholders for folders, because the names of one machine mean nothing on another.
TEXT_DIR, DATA_DIR, OUTPUT_DIR = "TEXT", "DATA", "OUT"


def hypotheses_file(recipe: Recipe, row: Row, checkpoint: str, split: str) -> str:
    """Return the name of the file of a row's outputs for a split.

    Args:
        recipe: The recipe.
        row: The row.
        checkpoint: One of the recipe's checkpoints.
        split: One of its splits.
    """
    is_first = checkpoint == recipe.checkpoints[0]
    return f"{split}.{row.system}{'' if is_first else f'.{checkpoint}'}.txt"


def _train(recipe: Recipe, seed: int) -> list[str]:
    command = ["train", "--problem", recipe.problem]
    command += ["--hparams_set", recipe.hparams_set]
    if recipe.hparams:
        command += ["--hparams", recipe.hparams]
    for flag, name in recipe.text_flags():
        command += [flag, f"{TEXT_DIR}/{name}"]
    if recipe.vocab_size is not None:
        command += ["--vocab_size", str(recipe.vocab_size)]
    command += ["--data_dir", DATA_DIR, "--output_dir", OUTPUT_DIR]
    command += ["--random_seed", str(seed), "--train_steps", str(recipe.train_steps)]
    command += ["--average_last", str(recipe.average_last)]
    if recipe.save_checkpoints_steps is not None:
        command += ["--save_checkpoints_steps", str(recipe.save_checkpoints_steps)]
    if recipe.save_checkpoints_secs is not None:
        command += ["--save_checkpoints_secs", str(recipe.save_checkpoints_secs)]
    return [*command, "--no_final_score"]


def _evaluate(
    recipe: Recipe, row: Row, checkpoint: str, split: str, seed: int
) -> list[str]:
    file = hypotheses_file(recipe, row, checkpoint, split)
    command = ["evaluate", "--output_dir", OUTPUT_DIR, "--split", split]
    command += ["--decode_to_file", f"{OUTPUT_DIR}/{file}"]
    if recipe.average_last:  # `t2t evaluate` prefers the average.
        command += ["--checkpoint_path", checkpoint]
    if row.branch_weights != "learned":
        command += ["--branch_weights", row.branch_weights, "--branch_seed", str(seed)]
    return command


@dataclass(frozen=True)
class Plan:
    """One training and the rows to score with it.

    Attributes:
        scale: "small", "long" or "paper".
        seed: Random seed of weights, dropout, data order and random branch weights.
        recipe: Recipe of the training and the scores.
        rows: Rows to score.
    """

    scale: str
    seed: int
    recipe: Recipe
    rows: tuple[Row, ...]

    def commands(self) -> list[str]:
        """Return the commands that train, then those that score the rows.

        They have placeholders for folders.
        """
        commands = [_train(self.recipe, self.seed)]
        commands += [
            _evaluate(self.recipe, row, checkpoint, split, self.seed)
            for row in self.rows
            for checkpoint in self.recipe.checkpoints
            for split in self.recipe.splits
        ]
        return [shlex.join(["t2t", *command]) for command in commands]


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
        recipe = recipes.paper_recipe(table, row)
    else:
        hparams = catalogue.hparams(row.hparams_set)
        recipe = recipes.reduced_recipe(table, row, hparams, scale)
    return Plan(scale, seed, recipe, _rows_of_training(table, row))


def _rows_of_training(table: Table, row: Row) -> tuple[Row, ...]:
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
