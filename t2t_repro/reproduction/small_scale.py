"""The fixed recipes by which every row is tried on a machine of two cores.

One rule for translation: widths are a quarter of the paper's and layers half as many;
heads, dropout, smoothing and everything else that a row varies stay. Text, steps and
schedule are the same for all rows. Scores can be compared within this scale and not
with the paper's. Parsing has one set for both of its rows, which differ in data alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.errors import UserError
from t2t_repro.hyperparameters import HParams

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


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What is trained on what, and for how long.

    Attributes:
        problem: Name of the problem.
        text: Files by the flag of `t2t train` that takes them. A result holds their
            checksums, to say what it is a result on.
        source: Where the files come from.
        vocab_size: Subwords.
        train_steps: Updates.
        average_last: Checkpoints averaged in the end; 0 = the last one is scored.
        save_checkpoints_steps: Updates from one of these to the next.
        splits: What is scored.
        hparams_set: The set that stands for every row; None = the row's own, scaled.
    """

    problem: str
    text: Mapping[str, str]
    source: str
    vocab_size: int
    train_steps: int
    average_last: int
    save_checkpoints_steps: int
    splits: tuple[str, ...]
    hparams_set: str | None = None

    def text_digests(self, folder: str | Path) -> dict[str, str]:
        """Find the text in a folder.

        Returns:
            File name to sha256.

        Raises:
            UserError: If a file is missing.
        """
        digests = {}
        for name in self.text.values():
            path = Path(folder) / name
            if not path.is_file():
                raise UserError(
                    f"received --text_dir {folder}, expected {self.source} in it "
                    f"({', '.join(self.text.values())}): {name} is missing."
                )
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return digests

    def scores(self, evaluated: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Take what is reported from what `t2t evaluate` printed for each split."""
        scores = {}
        for split, printed in evaluated.items():
            if "bleu" in printed:
                scores[f"BLEU ({split})"] = printed["bleu"]["value"]
            else:
                scores[f"F1 ({split})"] = printed["f1"]
                scores[f"F1 up to 40 words ({split})"] = printed["f1_up_to_40"]
        return scores


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
    average_last=0,
    save_checkpoints_steps=50,
    splits=("dev", "test"),
)
PARSING = Recipe(
    problem="parsing_ptb_initials",
    text={"--train_trees": "craft.train.mrg", "--dev_trees": "craft.dev.mrg"},
    source="trees of the CRAFT corpus (Verspoor et al. 2012), one a line",
    vocab_size=8_000,
    train_steps=20_000,
    average_last=5,
    save_checkpoints_steps=500,
    splits=("dev",),
    hparams_set="transformer_parsing_small",
)


def recipe_of(table: str) -> Recipe:
    """Return by which recipe the rows of a table are tried."""
    return PARSING if table == "table4" else TRANSLATION


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
