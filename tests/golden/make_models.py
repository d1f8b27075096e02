"""Write `models.json`: a summary of every kind of model at its initial weights.

Run from the root of the checkout::

    python tests/golden/make_models.py

Registered sets that differ only in sizes, in rates of dropout that are not 0, or in
settings of training are one kind, which has the name of the first of them.

The summaries pin the names, shapes and order of variables, their initial values, and
the masks of dropout. All of them depend on the order in which layers are made, so a
change that reorders layers shows here. Write the file again only for an
intended change, which makes earlier runs impossible to repeat.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np

from t2t_repro import catalogue, registry
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams

GOLDEN = Path(__file__).with_name("models.json")
SEED = 11
VOCAB_SIZE = 13
BATCH = {
    "inputs": np.array([[3, 5, 2, 7, 1], [4, 12, 1, 0, 0]], "int32"),
    "targets": np.array([[2, 9, 1, 0], [8, 6, 11, 1]], "int32"),
}
DROPOUTS = {
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.2,
    "relu_dropout": 0.3,
}
# Made equal in all sets: sizes and settings of training.
NOT_OF_THE_KIND = {
    "hidden_size": 16,
    "filter_size": 24,
    "num_heads": 4,
    "num_hidden_layers": 1,
    "attention_key_channels": 0,
    "attention_value_channels": 0,
    "max_length": 16,
    "label_smoothing": 0.1,
    "batch_size": 64,
    "min_length_bucket": 8,
    "length_bucket_step": 2.0,
    "optimizer_adam_beta2": 0.9,
    "packed_length": 0,
    "packed_source_length": 0,
    "learning_rate_schedule": "constant",
    "learning_rate_constant": 1.0,
    "learning_rate_warmup_steps": 10,
    "learning_rate_decay_steps": 10,
    "branch_frozen_after_steps": 0,
}
PRE_NORM = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
RESTRICTED = {"self_attention_type": "restricted", "attention_neighbourhood": 3}
# What no registered set has. Parts that the order of layers does not depend on may be
# together in one variant.
VARIANTS = {
    "additive restricted": {"attention_compatibility": "additive", **RESTRICTED},
    "parameter attention, restricted": {
        "ffn_layer": "parameter_attention",
        "parameter_attention_heads": 2,
        "parameter_attention_key_channels": 8,
        "parameter_attention_value_channels": 12,
        **RESTRICTED,
    },
    "branched shared self, pre-norm": {
        "branched_attention": "shared",
        "branched_in_decoder": "self",
        **PRE_NORM,
    },
    "branched softmax": {
        "branched_attention": "split",
        "branch_normalization": "softmax",
        "branch_top_k": 2,
    },
    "branched inside, unit gain": {
        "branched_attention": "shared",
        "branch_residual": "inside",
        "branch_gain": "unit",
        "branch_weights_init": "near_uniform",
    },
    "branched per branch": {
        "branched_attention": "split",
        "branch_residual": "per_branch",
        "branch_gain": "initial",
    },
    "branched per branch, self, pre-norm": {
        "branched_attention": "split",
        "branched_in_decoder": "self",
        "branch_residual": "per_branch",
        **PRE_NORM,
    },
    "channels": {"attention_key_channels": 16, "attention_value_channels": 24},
    "branched layers": {
        "branched_attention": "split",
        "num_encoder_layers": 3,
        "num_decoder_layers": 2,
    },
}


def shrunk(hparams: HParams) -> HParams:
    """Return a set that is small enough to run quickly, with the same wiring."""
    sizes = {
        "parameter_attention_key_channels": 8,
        "parameter_attention_value_channels": 12,
        "parameter_attention_heads": 2,
        **DROPOUTS,
    }
    chosen = {name: size for name, size in sizes.items() if getattr(hparams, name)}
    return hparams.replace(**chosen, **NOT_OF_THE_KIND)


def cases() -> Iterator[tuple[str, HParams]]:
    """Yield a name and the hparams of every model that the file describes."""
    catalogue.load()
    kinds: list[HParams] = []
    for name in registry.hparams_sets.names():
        hparams = shrunk(catalogue.hparams(name))
        if hparams not in kinds:
            kinds.append(hparams)
            yield name, hparams
    base = shrunk(catalogue.hparams("transformer_base")).replace(**DROPOUTS)
    for name, overrides in VARIANTS.items():
        yield f"variant: {name}", base.replace(**overrides)


# Used only by sets that count words or brackets.
COUNTERS = TokenCounters(
    (TokenCounter((3, 4)),), (TokenCounter((2, 5)), TokenCounter((3,), (4,)))
)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _loss(model: Transformer, *, training: bool) -> float:
    logits = model(BATCH, training=training)
    losses = keras.ops.sparse_categorical_crossentropy(
        BATCH["targets"], logits, from_logits=True
    )
    return float(keras.ops.mean(losses))


def summary(hparams: HParams) -> dict[str, str | float]:
    """Build a model with a fixed seed and describe it.

    Returns:
        Digests of the variables (names, shapes, order) and of the seeds of dropout, a
        weighted sum of the initial weights, and the losses of one batch with and
        without dropout.
    """
    # Keras numbers the seed generators of a process; this begins at 0 again.
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(SEED)
    model = Transformer.from_hparams(hparams, VOCAB_SIZE, VOCAB_SIZE, COUNTERS)
    variables = [f"{v.path} {tuple(v.shape)} {v.dtype}" for v in model.variables]
    seeds = [v for v in model.variables if v.name == "seed_generator_state"]
    weights = sorted(model.trainable_variables, key=lambda v: v.path)
    return {
        "variables": _digest(sorted(variables)),
        "order": _digest(variables),
        "trainable order": _digest([v.path for v in model.trainable_variables]),
        "seeds": _digest([f"{v.path} {_values(v).tolist()}" for v in seeds]),
        "weights": round(
            sum(
                number * float(_values(v) @ np.linspace(1.0, 2.0, _values(v).size))
                for number, v in enumerate(weights, 1)
            ),
            4,
        ),
        "training loss": round(_loss(model, training=True), 4),
        "loss": round(_loss(model, training=False), 4),
    }


def _values(variable: keras.Variable) -> np.ndarray:
    values = variable.numpy()
    is_seed = variable.name == "seed_generator_state"
    return np.ravel(values).astype("int64" if is_seed else "float64")


def main() -> None:
    golden = {name: summary(hparams) for name, hparams in cases()}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
