"""Outputs of layers with branches on the backend that Keras uses, and in NumPy."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from keras import ops

from t2t_repro.layers import DecoderLayer, EncoderLayer
from tests.support.branch_reference import BranchReference
from tests.support.tiny_model import randomize

RANDOM = np.random.default_rng(0)
X, MEMORY = RANDOM.normal(size=(3, 5, 8)), RANDOM.normal(size=(3, 7, 8))
SIZES: dict[str, Any] = {
    "hidden_size": 8,
    "filter_size": 12,
    "num_heads": 3,
    "attention_key_channels": 6,
    "attention_value_channels": 9,
    "norm_epsilon": 1e-4,
}
SELF, PRE = {"branched_in_decoder": "self"}, {"norm": "pre"}
SHARED = {"branched_attention": "shared"}
CHANGES: dict[str, dict[str, Any]] = {}
for _residual in ("around", "inside", "per_branch", "shared"):
    CHANGES |= {
        f"{_residual}{name}": {"branch_residual": _residual, **changes}
        for name, changes in {
            "": {},
            ", pre-norm, self": PRE | SELF,
            ", unit gain, top 2 by softmax": {
                "branch_gain": "unit",
                "branch_top_k": 2,
                "branch_normalization": "softmax",
            },
        }.items()
    }
CHANGES |= {
    "around, one network": {
        **SHARED,
        "branch_residual": "around",
        "branch_gain": "unit",
    },
    "inside, one network": {**SHARED, "branch_residual": "inside"},
    "per_branch, one network": {**SHARED, "branch_residual": "per_branch"},
}
CASES = {
    name: SIZES | {"branched_attention": "split"} | changes
    for name, changes in CHANGES.items()
}


def made(layer_class: type, name: str, seed: int) -> Any:
    """Make a layer with random weights, kappa and alpha."""
    layer = layer_class(**CASES[name])
    layer.build()
    randomize(layer, seed)
    on_simplex = CASES[name].get("branch_normalization") != "softmax"
    for number, weight in enumerate(layer.weights):
        if weight.name in ("kappa", "alpha") and on_simplex:
            draw = np.random.default_rng(number).uniform(0.1, 1.0, 3)
            weight.assign(draw / draw.sum())
    return layer


def weights_of(layer: Any) -> dict[str, np.ndarray]:
    """Return the weights by their path below the layer."""
    return {weight.path.partition("/")[2]: weight.numpy() for weight in layer.weights}


def results(names: Iterable[str] = CASES) -> dict[str, np.ndarray]:
    """Return the outputs of both layers, by kind of layer and name of case."""
    x, memory = X.astype("float32"), MEMORY.astype("float32")
    found = {}
    for name in names:
        found[f"encoder: {name}"] = made(EncoderLayer, name, 1)(x)
        found[f"decoder: {name}"] = made(DecoderLayer, name, 2)(x, memory)
    return {name: ops.convert_to_numpy(array) for name, array in found.items()}


@functools.cache
def reference_outputs(name: str) -> dict[str, np.ndarray]:
    """Return the outputs of both layers of a case in NumPy, named as in `results`."""
    encoder, decoder = (
        BranchReference(weights_of(made(layer, name, seed)), CASES[name])
        for layer, seed in ((EncoderLayer, 1), (DecoderLayer, 2))
    )
    pairs = zip(X, MEMORY, strict=True)
    return {
        f"encoder: {name}": np.stack([encoder.encoder_layer(x) for x in X]),
        f"decoder: {name}": np.stack([decoder.decoder_layer(x, m) for x, m in pairs]),
    }
