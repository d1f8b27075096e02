"""Commands that train and score the rows of a recipe, as a user would type them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from t2t_repro.features.reproduction.recipes import Recipe
from t2t_repro.features.reproduction.tables import Row

# Placeholders for folders, because the names of one machine mean nothing on another.
TEXT_DIR, DATA_DIR, OUTPUT_DIR = "TEXT", "DATA", "OUT"


def commands_of(recipe: Recipe, rows: Sequence[Row], seed: int) -> list[str]:
    """Return the command of a training run, then the commands that score its rows.

    Args:
        recipe: The recipe.
        rows: Rows that share the training run.
        seed: Random seed.
    """
    commands = [_train(recipe, seed)]
    commands += [
        _evaluate(recipe, row, checkpoint, split, seed)
        for row in rows
        for checkpoint in recipe.checkpoints
        for split in recipe.splits
    ]
    return [shlex.join(["t2t", *command]) for command in commands]


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
