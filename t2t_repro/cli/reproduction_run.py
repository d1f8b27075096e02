"""One row of a table, trained and scored by the commands that a user would type."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import shlex
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.reproduction import small_scale
from t2t_repro.reproduction.results import Result, hardware
from t2t_repro.reproduction.small_scale import Recipe
from t2t_repro.reproduction.tables import Row, Table


def run_row(table: Table, row: Row, args: argparse.Namespace) -> int:
    """Train and score a row, and write its result file.

    Raises:
        UsageError: If the row is not ours, or a flag is missing.
        UserError: If the text is missing, or training fails.
    """
    if row.hparams_set is None:
        raise UsageError(
            f"{table.name}/{row.name} is published only: it is not a system of this "
            "package."
        )
    if args.scale == "paper":
        return _show_paper_recipe(table, row)
    for flag in ("text_dir", "data_dir", "output_dir"):
        if getattr(args, flag) is None:
            raise UsageError(f"--{flag} is missing: --scale small needs it.")
    recipe = small_scale.recipe_of(table.name)
    data = recipe.text_digests(args.text_dir)
    training = train_command(recipe, row, args)
    _call(training)
    for each in _rows_of_the_training(table, row):
        scoring = [evaluate_command(recipe, s, each, args) for s in recipe.splits]
        printed = [json.loads(_call(command)) for command in scoring]
        evaluated = dict(zip(recipe.splits, printed, strict=True))
        result = dataclasses.replace(
            _trained(each, recipe, args),
            scores=_perplexity(args.output_dir) | recipe.scores(evaluated),
            signature=printed[-1].get("bleu", {}).get("signature", ""),
            commands=tuple(_without_places(c, args) for c in (training, *scoring)),
            data=data,
        )
        print(result.save(args.result_dir or args.output_dir))
    return 0


def _rows_of_the_training(table: Table, row: Row) -> list[Row]:
    """Return the rows that one training gives: those that are tested differently."""
    if len({each.branch_weights for each in table.rows}) == 1:
        return [row]
    return [each for each in table.rows if each.hparams_set == row.hparams_set]


def train_command(recipe: Recipe, row: Row, args: argparse.Namespace) -> list[str]:
    """Return what to type to train a row at the small scale."""
    hparams_set = recipe.hparams_set or str(row.hparams_set)
    text = Path(args.text_dir)
    command = ["train", "--problem", recipe.problem, "--hparams_set", hparams_set]
    if recipe.hparams_set is None:
        changes = small_scale.overrides(catalogue.hparams(hparams_set))
        command += ["--hparams", changes]
    for flag, name in recipe.text.items():
        command += [flag, str(text / name)]
    return [
        *command,
        *("--vocab_size", str(recipe.vocab_size), "--data_dir", args.data_dir),
        *("--output_dir", args.output_dir, "--random_seed", str(args.seed)),
        *("--train_steps", str(recipe.train_steps)),
        *("--average_last", str(recipe.average_last)),
        *("--save_checkpoints_steps", str(recipe.save_checkpoints_steps)),
    ]


def evaluate_command(
    recipe: Recipe, split: str, row: Row, args: argparse.Namespace
) -> list[str]:
    """Return what to type to score a row on a split; the output is kept."""
    outputs = Path(args.output_dir) / f"{split}.{row.system}.txt"
    command = [
        *("evaluate", "--output_dir", args.output_dir, "--split", split),
        *("--decode_to_file", str(outputs)),
    ]
    if recipe.average_last:
        command += ["--checkpoint_path", "averaged"]
    if row.branch_weights != "learned":
        command += ["--branch_weights", row.branch_weights]
        command += ["--branch_seed", str(args.seed)]
    return command


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


def _perplexity(output_dir: str) -> dict[str, float]:
    return {"perplexity (dev)": _metrics(output_dir, "eval")[-1]["perplexity"]}


def _without_places(command: list[str], args: argparse.Namespace) -> str:
    """Write a command; places differ from machine to machine and say nothing."""
    text = shlex.join(["t2t", *command])
    places = {args.text_dir: "TEXT", args.data_dir: "DATA", args.output_dir: "OUT"}
    for place, name in sorted(places.items(), key=lambda item: -len(item[0])):
        text = text.replace(place, name)
    return text


def _show_paper_recipe(table: Table, row: Row) -> int:
    """Print what to type where there are 8 GPUs and a network.

    Raises:
        UsageError: If the paper does not say how long the row was trained.
    """
    if row.train_steps is None:
        raise UsageError(
            f"{table.name}/{row.name}: the paper does not say for how many steps it "
            f"was trained. `t2t show {row.hparams_set}` has the command."
        )
    print(
        "t2t train --problem translate_ende_wmt14 --hparams_set "
        f"{row.hparams_set} --data_dir DATA --output_dir OUT "
        f"--train_steps {row.train_steps} "
        "--average_last 0\n"
        "t2t evaluate --output_dir OUT --source newstest2013.en --reference "
        "newstest2013.de"
    )
    return 0
