"""The fixed recipes by which every row is tried on a machine of two cores.

One rule for translation: widths are a quarter of the paper's and layers half as many;
heads, dropout, smoothing and everything else that a row varies stay. Text, steps and
schedule are the same for all rows. Scores can be compared within this scale and not
with the paper's. Parsing has a set of its own, and its row from the WSJ alone: for the
semi-supervised one there is no text.
"""

from __future__ import annotations

import dataclasses

from t2t_repro.errors import UsageError
from t2t_repro.reproduction.recipes import Recipe
from t2t_repro.reproduction.tables import Row, Table
from t2t_repro.settings.hparams import HParams

WIDTH_DIVISOR = 4
LAYERS_DIVISOR = 2
# The share of training in which the Weighted Transformer's branch weights still move:
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
# Four batch shapes of 1,024 tokens, and a peak of the learning rate of 2.0e-3 at width
# 128, after as many steps for all rows.
_TRAINING = {
    "batch_size": 1024,
    "max_length": 49,
    "min_length_bucket": 15,
    "length_bucket_step": 1.5,
    "learning_rate_constant": 0.5,
    "learning_rate_warmup_steps": 500,
}


TRANSLATION = Recipe(
    problem="text_pairs",
    text={
        "--train_source": "train.en",
        "--train_target": "train.de",
        "--dev_source": "val.en",
        "--dev_target": "val.de",
        "--test_source": "test2016.en",
        "--test_target": "test2016.de",
    },
    source="raw text of Multi30k task 1 (Elliott et al. 2016)",
    vocab_size=4_000,
    train_steps=2_500,
    checkpoints=("--save_checkpoints_steps", "50"),
    splits=("dev", "test"),
)
PARSING = Recipe(
    problem="parsing_ptb_initials",
    text={"--train_trees": "craft.train.mrg", "--dev_trees": "craft.dev.mrg"},
    source="trees of the CRAFT corpus (Verspoor et al. 2012), one a line",
    vocab_size=8_000,
    train_steps=20_000,
    average_last=5,
    checkpoints=("--save_checkpoints_steps", "500"),
    splits=("dev",),
    hparams_set="transformer_parsing_small",
)


PARSING_ROW = "transformer_4_layers_wsj_only"


def recipe_of(table: Table, row: Row, hparams: HParams) -> Recipe:
    """Return how a row is tried.

    Args:
        table: Its table.
        row: A row with a set.
        hparams: That set.

    Raises:
        UsageError: If the row cannot be tried at this scale.
    """
    if table.task == "translation":
        return dataclasses.replace(
            TRANSLATION, hparams_set=str(row.hparams_set), hparams=overrides(hparams)
        )
    if row.name != PARSING_ROW:
        raise UsageError(
            f"{table.name}/{row.name} has no small scale: its 17 million sentences "
            f"parsed by other parsers are not at hand. {table.name}/{PARSING_ROW} has "
            "one."
        )
    return PARSING


def scaled(hparams: HParams) -> HParams:
    """Return a set of a translation table at the small scale."""
    changes: dict[str, int | float] = {
        name: getattr(hparams, name) // WIDTH_DIVISOR for name in _WIDTHS
    }
    changes |= {name: getattr(hparams, name) // LAYERS_DIVISOR for name in _LAYERS}
    if hparams.branched_attention != "none":
        changes["branch_learning_rate_warmup_steps"] = (
            _TRAINING["learning_rate_warmup_steps"] // 10
        )
        changes["branch_frozen_after_steps"] = round(
            TRANSLATION.train_steps * MOVING_SHARE
        )
    return hparams.replace(**changes, **_TRAINING)


def overrides(hparams: HParams) -> str:
    """Return what `--hparams` must say to train a set at the small scale."""
    changes = hparams.diff(scaled(hparams))
    return ",".join(f"{name}={value}" for name, (_, value) in changes.items())
