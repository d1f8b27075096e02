"""One row of a table, trained and scored by the commands that a user would type."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.reproduction import paper_scale, small_scale
from t2t_repro.reproduction.recipes import Recipe
from t2t_repro.reproduction.results import Result, hardware
from t2t_repro.reproduction.tables import Row, Table

# What stands for the folders in a recipe: a machine's own names say nothing elsewhere.
PLACES = {"text_dir": "TEXT", "data_dir": "DATA", "output_dir": "OUT"}


def run_row(table: Table, row: Row, args: argparse.Namespace) -> int:
    """Train and score a row, and write its result file.

    Raises:
        UsageError: If the row is not ours, or a flag is missing.
        UserError: If text or the results' folder is missing, or training fails.
    """
    if row.hparams_set is None:
        raise UsageError(
            f"{table.name}/{row.name} is published only: it is not a system of this "
            "package."
        )
    recipe = _recipe(table, row, args.scale)
    rows = _rows_of_the_training(table, row)
    if args.scale == "paper" and args.data_dir is None and args.output_dir is None:
        print("\n".join(_shown_commands(recipe, rows, args.seed)))
        return 0
    _check_places(recipe, args)
    data = recipe.text_digests(args.text_dir)
    _call(train_command(recipe, args))
    for each in rows:
        printed = [_call(command) for command in evaluate_commands(recipe, each, args)]
        evaluated = dict(zip(recipe.splits, map(json.loads, printed), strict=True))
        result = dataclasses.replace(
            _trained(each, recipe, args),
            scores=_perplexity(recipe, each, args.output_dir)
            | recipe.scores(evaluated),
            signature=evaluated[recipe.splits[-1]].get("bleu", {}).get("signature", ""),
            commands=tuple(_shown_commands(recipe, [each], args.seed)),
            data=data,
        )
        print(result.save(args.result_dir or args.output_dir))
    return 0


def _recipe(table: Table, row: Row, scale: str) -> Recipe:
    if scale == "paper":
        return paper_scale.recipe_of(table, row)
    return small_scale.recipe_of(table, row, catalogue.hparams(str(row.hparams_set)))


def _check_places(recipe: Recipe, args: argparse.Namespace) -> None:
    """Refuse what is missing before anything is trained.

    Raises:
        UsageError: If a flag is missing.
        UserError: If the folder of results is.
    """
    for flag in PLACES:
        needed = recipe.text or flag != "text_dir"
        if needed and getattr(args, flag) is None:
            raise UsageError(f"--{flag} is missing: --scale {args.scale} needs it.")
    if args.result_dir is not None and not os.access(args.result_dir, os.W_OK):
        raise UserError(
            f"received --result_dir {args.result_dir}, expected an existing folder "
            "that can be written to."
        )


def _rows_of_the_training(table: Table, row: Row) -> list[Row]:
    """Return the rows that one training gives: those that are tested differently."""
    if len({each.branch_weights for each in table.rows}) == 1:
        return [row]
    return [each for each in table.rows if each.hparams_set == row.hparams_set]


def train_command(recipe: Recipe, args: argparse.Namespace) -> list[str]:
    """Return what to type to train by a recipe."""
    command = ["train", "--problem", recipe.problem]
    command += ["--hparams_set", recipe.hparams_set]
    if recipe.hparams:
        command += ["--hparams", recipe.hparams]
    for flag, name in recipe.text.items():
        command += [flag, str(Path(args.text_dir) / name)]
    if recipe.vocab_size is not None:
        command += ["--vocab_size", str(recipe.vocab_size)]
    return [
        *command,
        *("--data_dir", args.data_dir, "--output_dir", args.output_dir),
        *("--random_seed", str(args.seed), "--train_steps", str(recipe.train_steps)),
        *("--average_last", str(recipe.average_last)),
        *(recipe.checkpoints or ()),
        "--no_final_score",
    ]


def evaluate_commands(
    recipe: Recipe, row: Row, args: argparse.Namespace
) -> list[list[str]]:
    """Return what to type to score a row on each split; the outputs are kept."""
    options = []
    if recipe.average_last:
        options += ["--checkpoint_path", "averaged"]
    if row.branch_weights != "learned":
        options += ["--branch_weights", row.branch_weights]
        options += ["--branch_seed", str(args.seed)]
    return [
        [
            *("evaluate", "--output_dir", args.output_dir, "--split", split),
            "--decode_to_file",
            str(Path(args.output_dir) / f"{split}.{row.system}.txt"),
            *options,
        ]
        for split in recipe.splits
    ]


def _shown_commands(recipe: Recipe, rows: Sequence[Row], seed: int) -> list[str]:
    """Write the commands of a training and of its rows, whatever the folders."""
    args = argparse.Namespace(**PLACES, seed=seed)
    commands = [train_command(recipe, args)]
    for row in rows:
        commands += evaluate_commands(recipe, row, args)
    return [shlex.join(["t2t", *command]) for command in commands]


def _call(command: list[str]) -> str:
    """Run a command of this program that must succeed; return its standard output."""
    from t2t_repro.cli.main import run_command

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = run_command(command)
    if code:
        raise UserError(f"t2t {command[0]} stopped; the same command goes on.")
    return printed.getvalue()


def _trained(row: Row, recipe: Recipe, args: argparse.Namespace) -> Result:
    """Describe what was trained; its scores, commands and data are to be filled in."""
    from t2t_repro.cli.system import build_model
    from t2t_repro.runs import Run

    run = Run.load_existing(args.output_dir)
    model = build_model(run, *run.load_tokenizers(args.output_dir))
    return Result(
        system=str(row.system),
        scale=args.scale,
        seed=args.seed,
        scores={},
        signature="",
        steps=recipe.train_steps,
        seconds=round(_training_seconds(args.output_dir), 1),
        parameters=model.count_params(),
        commands=(),
        data={},
        hardware=hardware(),
        versions=run.versions,
    )


def _metrics(output_dir: str, split: str) -> list[dict[str, Any]]:
    text = (Path(output_dir) / "metrics.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    return [record for record in records if record["split"] == split]


def _training_seconds(output_dir: str) -> float:
    """Sum the times between lines of metrics; a training may have been interrupted."""
    seconds, before = 0.0, 0
    for record in _metrics(output_dir, "train"):
        seconds += (record["step"] - before) / record["steps_per_second"]
        before = record["step"]
    return seconds


def _perplexity(recipe: Recipe, row: Row, output_dir: str) -> dict[str, float]:
    """Return the training's last one, unless other weights than its last are scored."""
    if recipe.average_last or row.branch_weights != "learned":
        return {}
    return {"perplexity (dev)": _metrics(output_dir, "eval")[-1]["perplexity"]}
