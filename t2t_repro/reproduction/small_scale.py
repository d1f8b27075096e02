"""The fixed recipe by which every row is tried on a machine of two cores.

One rule: widths are a quarter of the paper's and layers half as many; heads, dropout,
smoothing and everything else that a row varies stay. Text, steps and schedule are the
same for all rows. Scores can be compared within this scale and not with the paper's.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.hyperparameters import HParams

WIDTH_DIVISOR = 4
LAYERS_DIVISOR = 2
TRAIN_STEPS = 3_000
VOCAB_SIZE = 8_000
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
# Ten batch shapes of 2,048 tokens, and a peak of the learning rate of 1.4e-3 at width
# 128, after as many steps for all rows.
_TRAINING = {
    "batch_size": 2048,
    "max_length": 64,
    "min_length_bucket": 12,
    "length_bucket_step": 1.25,
    "learning_rate_constant": 0.5,
    "learning_rate_warmup_steps": 1000,
}

# Multi30k task 1 (Elliott et al. 2016), raw text. A result holds the checksums of the
# files, to say what it is a result on.
TEXT = ("train.en", "train.de", "val.en", "val.de", "test2016.en", "test2016.de")


def scaled(hparams: HParams) -> HParams:
    """Return a set at the small scale."""
    changes: dict[str, int | float] = {
        name: getattr(hparams, name) // WIDTH_DIVISOR for name in _WIDTHS
    }
    changes |= {name: getattr(hparams, name) // LAYERS_DIVISOR for name in _LAYERS}
    if hparams.branched_attention != "none":
        changes["branch_learning_rate_warmup_steps"] = (
            _TRAINING["learning_rate_warmup_steps"] // 10
        )
        changes["branch_frozen_after_steps"] = round(TRAIN_STEPS * MOVING_SHARE)
    return hparams.replace(**changes, **_TRAINING)


def overrides(hparams: HParams) -> str:
    """Return what `--hparams` must say to train a set at the small scale."""
    changes = hparams.diff(scaled(hparams))
    return ",".join(f"{name}={value}" for name, (_, value) in changes.items())


def text_files(folder: str | Path) -> dict[str, str]:
    """Find the text in a folder.

    Returns:
        File name to sha256.

    Raises:
        UserError: If a file is missing.
    """
    digests = {}
    for name in TEXT:
        path = Path(folder) / name
        if not path.is_file():
            raise UserError(
                f"received --text_dir {folder}, expected {', '.join(TEXT)} of Multi30k "
                f"in it: {name} is missing."
            )
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests
