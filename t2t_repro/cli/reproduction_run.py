"""One row of a table, trained and scored by the commands that a user would type."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import time
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.reproduction import small_scale
from t2t_repro.reproduction.results import Result, hardware
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
    if row.train_steps is None:
        raise UsageError(
            f"{table.name}/{row.name} cannot be run yet: it is not a training of its "
            "own on translations."
        )
    if args.scale == "paper":
        return _show_paper_recipe(row)
    for flag in ("text_dir", "data_dir", "output_dir"):
        if getattr(args, flag) is None:
            raise UsageError(f"--{flag} is missing: --scale small needs it.")
    data = small_scale.text_files(args.text_dir)
    commands = small_commands(row.hparams_set, args)
    start = time.monotonic()
    _call(commands[0])
    seconds = time.monotonic() - start
    scores = {
        split: json.loads(_call(command))
        for split, command in zip(("dev", "test"), commands[1:], strict=True)
    }
    result = _result(table, row, args, commands, scores, seconds, data)
    print(result.save(args.result_dir or args.output_dir))
    return 0


def small_commands(hparams_set: str, args: argparse.Namespace) -> list[list[str]]:
    """Return what to type at the small scale: train, score on dev, score on test."""
    text = Path(args.text_dir)
    sides = {"source": "en", "target": "de"}
    names = {"train": "train", "dev": "val", "test": "test2016"}
    files = [
        word
        for split, name in names.items()
        for side, suffix in sides.items()
        for word in (f"--{split}_{side}", str(text / f"{name}.{suffix}"))
    ]
    hparams = catalogue.hparams(hparams_set)
    train = [
        *("train", "--problem", "text_pairs", "--hparams_set", hparams_set),
        *("--hparams", small_scale.overrides(hparams), *files),
        *("--vocab_size", str(small_scale.VOCAB_SIZE), "--data_dir", args.data_dir),
        *("--output_dir", args.output_dir, "--random_seed", str(args.seed)),
        *("--train_steps", str(small_scale.TRAIN_STEPS), "--average_last", "0"),
    ]
    evaluate = ["evaluate", "--output_dir", args.output_dir, "--split"]
    return [train, [*evaluate, "dev"], [*evaluate, "test"]]


def _call(command: list[str]) -> str:
    """Run a command of this program that must succeed; return its standard output."""
    from t2t_repro.cli.main import run_command

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = run_command(command)
    if code:
        raise UserError(f"t2t {command[0]} stopped; the same command goes on.")
    return printed.getvalue()


def _result(
    table: Table,
    row: Row,
    args: argparse.Namespace,
    commands: list[list[str]],
    scores: dict[str, dict],
    seconds: float,
    data: dict[str, str],
) -> Result:
    from t2t_repro.cli.system import build_model
    from t2t_repro.runs import Run

    run = Run.load_existing(args.output_dir)
    model = build_model(run, *run.load_tokenizers(args.output_dir))
    return Result(
        table=table.name,
        row=row.name,
        scale=args.scale,
        seed=args.seed,
        scores={
            "perplexity (dev)": _last_perplexity(Path(args.output_dir)),
            "BLEU (dev)": scores["dev"]["bleu"]["value"],
            "BLEU (test)": scores["test"]["bleu"]["value"],
        },
        signature=scores["test"]["bleu"]["signature"],
        steps=small_scale.TRAIN_STEPS,
        seconds=round(seconds, 1),
        parameters=model.count_params(),
        # Places differ from machine to machine and say nothing.
        commands=tuple(_without_places(command, args) for command in commands),
        data=data,
        hardware=hardware(),
        versions=run.versions,
    )


def _without_places(command: list[str], args: argparse.Namespace) -> str:
    text = shlex.join(["t2t", *command])
    places = {args.text_dir: "TEXT", args.data_dir: "DATA", args.output_dir: "OUT"}
    for place, name in sorted(places.items(), key=lambda item: -len(item[0])):
        text = text.replace(place, name)
    return text


def _last_perplexity(output_dir: Path) -> float:
    lines = (output_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return next(r["perplexity"] for r in reversed(records) if r["split"] == "eval")


def _show_paper_recipe(row: Row) -> int:
    """Print what to type where there are 8 GPUs and a network."""
    print(
        "t2t train --problem translate_ende_wmt14 --hparams_set "
        f"{row.hparams_set} --data_dir DATA --output_dir OUT "
        f"--train_steps {row.train_steps} "
        "--average_last 0\n"
        "t2t evaluate --output_dir OUT --source newstest2013.en --reference "
        "newstest2013.de"
    )
    return 0
