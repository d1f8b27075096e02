"""A tiny trained system that the tests of the commands share."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro import catalogue
from t2t_repro.cli.main import main
from t2t_repro.data.request import PairFiles

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier"}
COLOURS = {"red": "rot", "green": "grün", "blue": "blau", "white": "weiß"}
THINGS = {"house": "Haus", "book": "Buch", "horse": "Pferd", "ship": "Schiff"}

# One batch shape and one layer: a step is traced in seconds.
HPARAMS = (
    "hidden_size=32,filter_size=32,num_heads=2,num_hidden_layers=1,batch_size=512,"
    "max_length=32,min_length_bucket=32,layer_prepostprocess_dropout=0.1,"
    "learning_rate_constant=0.5,learning_rate_warmup_steps=20"
)


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained system.

    Attributes:
        data_dir: Its data, made from `text`.
        output_dir: Its run.
        arguments: All flags of `t2t train` except those of steps.
        text: File by split and side, as ("dev", "source").
        printed: Standard output of `t2t train`.
        steps: Number of completed updates.
    """

    data_dir: Path
    output_dir: Path
    arguments: list[str]
    text: dict[tuple[str, str], Path]
    printed: str
    steps: int

    def copied_to(self, folder: Path) -> Trained:
        """Return the same system with a copy of its run."""
        shutil.copytree(self.output_dir, folder)
        arguments = [*self.arguments[:-1], str(folder)]
        printed = self.printed.replace(str(self.output_dir), str(folder))
        return dataclasses.replace(
            self, output_dir=folder, arguments=arguments, printed=printed
        )

    def metrics(self, split: str) -> list[dict[str, Any]]:
        text = (self.output_dir / "metrics.jsonl").read_text(encoding="utf-8")
        records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if record["split"] == split]


def sentence_pairs() -> list[tuple[str, str]]:
    """Return pairs of a small language, translated word by word."""
    return [
        (f"{n} times: the {t} is {c} .", f"{NUMBERS[n]} mal: das {THINGS[t]} ist {x} .")
        for n in NUMBERS
        for t in THINGS
        for c, x in COLOURS.items()
    ]


def write_text(folder: Path) -> dict[tuple[str, str], Path]:
    """Write the sentences of each split, and some of another script."""
    pairs = sentence_pairs()
    splits = {"train": pairs * 4, "dev": pairs[::9], "test": pairs[4::9]}
    splits["dev"].append(("naïve 漢字 🙂", "naiv 漢字 🙂"))
    paths = {}
    for split, own in splits.items():
        for column, side in enumerate(("source", "target")):
            path = paths[split, side] = folder / f"{split}.{side}"
            path.write_text("".join(f"{pair[column]}\n" for pair in own))
    return paths


def prepared_text(folder: Path, **settings: Any):
    """Return the sentences of `write_text` as prepared data."""
    from t2t_repro.data.prepare import prepare

    text = write_text(folder)
    files = {
        split: PairFiles(text[split, "source"], text[split, "target"])
        for split in ("train", "dev", "test")
    }
    problem = catalogue.problem("text_pairs").with_files(files)
    own = problem.prepare_settings.replace(vocab_size=350, **settings)
    return prepare(problem, folder / "data", settings=own)


def printed_by(arguments: Sequence[str]) -> str:
    """Run a command that must succeed, and return its standard output."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(stream):
        assert main(arguments) == 0
    stream.seek(0)
    return stream.read()


def weights_at(checkpoint: str | Path, part: str = "model") -> dict[str, np.ndarray]:
    """Return the values of a part of a checkpoint by the paths of its variables."""
    from t2t_repro.training.checkpoints import read_values

    return read_values(str(checkpoint), part)


def train_arguments(
    text: dict[tuple[str, str], Path], data_dir: Path, output_dir: Path
) -> list[str]:
    """Return the flags of `t2t train` on these files, except those of steps."""
    files = [
        argument
        for (split, side), path in text.items()
        for argument in (f"--{split}_{side}", str(path))
    ]
    return [
        *("--problem", "text_pairs", "--keep_duplicates", "--vocab_size", "350"),
        *files,
        *("--hparams_set", "transformer_tiny", "--hparams", HPARAMS, "--xla", "off"),
        *("--data_dir", str(data_dir), "--output_dir", str(output_dir)),
    ]


def train_system(folder: Path) -> Trained:
    """Train a system for 60 steps with checkpoints at 20, 40 and 60."""
    text, steps = write_text(folder), 60
    data_dir, output_dir = folder / "data", folder / "run"
    arguments = train_arguments(text, data_dir, output_dir)
    how_often = ["--log_step_count_steps", "10", "--local_eval_frequency", "30"]
    checkpoints = ["--save_checkpoints_steps", "20", "--average_last", "2"]
    printed = printed_by(
        ["train", *arguments, "--train_steps", str(steps), *how_often, *checkpoints]
    )
    return Trained(data_dir, output_dir, arguments, text, printed, steps)
