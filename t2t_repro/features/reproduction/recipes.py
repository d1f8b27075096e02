"""Recipes: data, length of training, and splits to score.

The papers' recipes need WMT 2014 and 8 GPUs with 3,125 tokens each. The others train
any row on a machine with two cores.

Translation has one rule: widths are a quarter of the paper's and layers half as many.
Heads, dropout, smoothing and everything else that a row varies stay. Steps and
schedule are the same for all rows. The text is Multi30k, English to German, and French
for the table enfr. Scores can be compared within this scale and text, but not with the
paper's. Parsing has its own set; both parsers are trained alike, on different trees.

The scale "long" has the same sizes, text and batches, and four times the steps at half
the peak of the learning rate, so that its scores say less about how fast a system
learns. There, the learning rates of kappa and alpha and of the other weights have the
paper's ratio; at the small scale, only the other weights learn more slowly.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from t2t_repro.data.request import PairFiles, TreeFile
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.reproduction.paper_tables import Row, Table
from t2t_repro.settings.hparams import HParams


@dataclass(frozen=True)
class Recipe:
    """Recipe to train and score a row.

    Attributes:
        problem: Name of the problem.
        train_steps: Number of updates.
        splits: Splits to score.
        hparams_set: Name of the set.
        hparams: Changes to the set, in the form of `--hparams`.
        average_last: Number of checkpoints to average after training; 0 = score the
            last one.
        save_checkpoints_steps: Steps between checkpoints; None = the default.
        save_checkpoints_secs: Seconds between checkpoints; None = the default.
        text: File names by split: source and target, or one file of trees. Empty if
            the problem has its own text.
        text_source: Origin of the files.
        vocab_size: Number of subwords; None = the problem's default.
        ranks_systems: Whether to score the last checkpoint beside the average, and both
            by the nll on dev and by BLEU on all splits together.
    """

    problem: str
    train_steps: int
    splits: tuple[str, ...]
    hparams_set: str = ""
    hparams: str = ""
    average_last: int = 0
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: int | None = None
    text: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text_source: str = ""
    vocab_size: int | None = None
    ranks_systems: bool = False

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Checkpoints to score, as `System.load` names them."""
        if not self.average_last:
            return ("latest",)
        return ("latest", "averaged") if self.ranks_systems else ("averaged",)

    @property
    def file_names(self) -> list[str]:
        """Names of all files, beginning with the training text."""
        return [name for names in self.text.values() for name in names]

    def text_flags(self) -> Iterator[tuple[str, str]]:
        """Yield each flag of `t2t train` that takes a file, with the file's name."""
        for split, names in self.text.items():
            roles = ("trees",) if len(names) == 1 else ("source", "target")
            for role, name in zip(roles, names, strict=True):
                yield f"--{split}_{role}", name

    def text_files(self, folder: Path) -> dict[str, PairFiles | TreeFile]:
        """Return the files of each split in a folder."""
        files: dict[str, PairFiles | TreeFile] = {}
        for split, names in self.text.items():
            first, *others = (folder / name for name in names)
            files[split] = PairFiles(first, *others) if others else TreeFile(first)
        return files

    def text_digests(self, folder: Path) -> dict[str, str]:
        """Return the sha256 of each file in a folder, by file name.

        Raises:
            UserError: If a file is missing.
        """
        digests = {}
        for name in self.file_names:
            path = folder / name
            if not path.is_file():
                raise UserError(
                    f"received text_dir={folder}, expected {self.text_source} in it "
                    f"({', '.join(self.file_names)}): {name} is missing."
                )
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return digests


# Problem by target language.
PROBLEMS = {"de": "translate_ende_wmt14", "fr": "translate_enfr_wmt14"}
SECONDS_BETWEEN_CHECKPOINTS = 600  # section 6.1


def paper_recipe(table: Table, row: Row) -> Recipe:
    """Return the paper's recipe for a row.

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


WIDTH_DIVISOR = 4
LAYERS_DIVISOR = 2
REDUCED_SIZE = "a quarter of the widths, half the layers"
# The Weighted Transformer's branch weights are frozen after this share of the run:
# 50,000 of 60,000 steps.
MOVING_SHARE = 5 / 6

_WIDTHS = (
    "hidden_size",
    "filter_size",
    "attention_key_channels",
    "attention_value_channels",
    "parameter_attention_key_channels",
    "parameter_attention_value_channels",
)
_LAYERS = ("num_hidden_layers", "num_encoder_layers", "num_decoder_layers")
# Four batch shapes of 1,024 tokens. At width 128 the learning rate peaks at 2.0e-3; all
# rows reach their peak after the same number of steps.
_TRAINING = {
    "batch_size": 1024,
    "max_length": 49,
    "min_length_bucket": 15,
    "length_bucket_step": 1.5,
    "learning_rate_constant": 0.5,
    "learning_rate_warmup_steps": 500,
}
# Ten thousand steps; at width 128 the learning rate peaks at 1.0e-3.
LONG_STEPS = 10_000
_LONG_TRAINING = _TRAINING | {
    "learning_rate_constant": 0.32,
    "learning_rate_warmup_steps": 800,
}

_FILES = {"train": "train", "dev": "val", "test": "test2016"}


def _text(language: str) -> dict[str, tuple[str, ...]]:
    """Return the files of Multi30k, English to a language, by split."""
    return {
        split: (f"{name}.en", f"{name}.{language}") for split, name in _FILES.items()
    }


TRANSLATION = Recipe(
    problem="text_pairs",
    text=_text("de"),
    text_source="raw text of Multi30k task 1 (Elliott et al. 2016)",
    vocab_size=4_000,
    train_steps=2_500,
    save_checkpoints_steps=50,
    splits=("dev", "test"),
)
PARSING = Recipe(
    problem="parsing_ptb_initials",
    text={"train": ("craft.train.mrg",), "dev": ("craft.dev.mrg",)},
    text_source="trees of the CRAFT corpus (Verspoor et al. 2012), one per line",
    vocab_size=8_000,
    train_steps=23_000,
    average_last=5,
    save_checkpoints_steps=250,
    splits=("dev",),
    hparams_set="transformer_parsing_small",
)

# Gold trees, then trees that the parser of the recipe above gives to other text.
PARSING_SEMI = dataclasses.replace(
    PARSING,
    text={"train": ("craft.semi.mrg",), "dev": PARSING.text["dev"]},
    text_source=(
        f"{PARSING.text_source}, and silver trees that docs/results/silver.py added"
    ),
)
PARSERS = {
    "transformer_parsing_wsj": PARSING,
    "transformer_parsing_semi": PARSING_SEMI,
}


def reduced_recipe(
    table: Table, row: Row, hparams: HParams, scale: str = "small"
) -> Recipe:
    """Return the recipe of a row at the small or long scale.

    Args:
        table: Its table.
        row: A row with an hparams set.
        hparams: That set, without the row's changes.
        scale: "small" or "long".

    Raises:
        UsageError: If the row has no recipe at this scale.
    """
    if table.task == "parsing":
        if scale == "long":
            raise UsageError(
                f"{table.name}/{row.name} has no long scale: use scale=small."
            )
        return PARSERS[str(row.hparams_set)]
    recipe = dataclasses.replace(
        TRANSLATION,
        hparams_set=str(row.hparams_set),
        hparams=overrides(hparams, scale, row.hparams),
        text=_text(table.target_language),
    )
    if scale == "small":
        return recipe
    return dataclasses.replace(
        recipe,
        train_steps=LONG_STEPS,
        save_checkpoints_steps=LONG_STEPS // 50,
        average_last=5,
        ranks_systems=True,
    )


def scaled(hparams: HParams, scale: str = "small") -> HParams:
    """Return an hparams set of a translation table at the small or long scale."""
    training = _TRAINING if scale == "small" else _LONG_TRAINING
    steps = TRANSLATION.train_steps if scale == "small" else LONG_STEPS
    changes: dict[str, int | float] = {
        name: getattr(hparams, name) // WIDTH_DIVISOR for name in _WIDTHS
    }
    changes |= {name: getattr(hparams, name) // LAYERS_DIVISOR for name in _LAYERS}
    # Kappa and alpha that never change have no schedule.
    if hparams.branched_attention != "none" and hparams.branch_learning_rate_constant:
        changes["branch_learning_rate_warmup_steps"] = (
            training["learning_rate_warmup_steps"] // 10
        )
        changes["branch_frozen_after_steps"] = round(steps * MOVING_SHARE)
        if scale == "long":
            # The small scale trains branch weights at the paper's full rate.
            changes["branch_learning_rate_constant"] = training[
                "learning_rate_constant"
            ]
    return hparams.replace(**changes, **training)


def overrides(hparams: HParams, scale: str = "small", changed: str = "") -> str:
    """Return the value of `--hparams` that trains a set at the small or long scale.

    Args:
        hparams: The set.
        scale: "small" or "long".
        changed: Changes to the set at full size, in the form of `--hparams`.
    """
    changes = hparams.diff(scaled(hparams.parse(changed), scale))
    return ",".join(f"{name}={value}" for name, (_, value) in changes.items())
