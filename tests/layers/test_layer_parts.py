"""Every sublayer of a stack has its dtype and its options."""

from __future__ import annotations

from typing import Any

import pytest

from t2t_repro import constants
from t2t_repro.errors import UsageError
from t2t_repro.layers import Decoder, Encoder, EncoderLayer, sublayers
from t2t_repro.layers.options import Sublayer, keyword_arguments

# All values differ, so that an exchanged one is noticed.
DENSE: dict[str, Any] = {
    "hidden_size": 20,
    "filter_size": 36,
    "num_heads": 4,
    "attention_key_channels": 8,
    "attention_value_channels": 12,
    "norm": "pre",
    "norm_epsilon": 1e-3,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.2,
    "relu_dropout": 0.3,
    "parameter_attention_heads": 2,
    "parameter_attention_key_channels": 16,
    "parameter_attention_value_channels": 28,
}
SPLIT = {
    "branched_attention": "split",
    "branch_normalization": "softmax",
    "branch_top_k": 3,
    "branch_gain": "unit",
    "branch_weights_init": "near_uniform",
}
KINDS = {
    name: DENSE | changes
    for name, changes in {
        "dense": {},
        "post-norm": {"norm": "post"},
        "additive": {"attention_compatibility": "additive"},
        "attention over parameters": {"ffn_layer": "parameter_attention"},
        "restricted": {
            "self_attention_type": "restricted",
            "attention_neighbourhood": 3,
        },
        "split branches": SPLIT,
        "shared branches": {"branched_attention": "shared"},
        "residuals inside": SPLIT | {"branch_residual": "inside"},
        "a residual stream each": SPLIT | {"branch_residual": "per_branch"},
        "one residual stream": SPLIT | {"branch_residual": "shared"},
        "branches in self-attention": SPLIT | {"branched_in_decoder": "self"},
    }.items()
}
POLICY = "mixed_bfloat16"


def parts(layer):
    return [part for part in layer._flatten_layers() if part is not layer]


@pytest.mark.parametrize("layer_class", [Encoder, Decoder])
@pytest.mark.parametrize("kind", KINDS)
def test_every_part_has_the_dtype_options_and_weights_of_the_arguments(
    layer_class, kind
):
    layer = layer_class(**KINDS[kind], num_layers=1, dtype=POLICY)
    policies = {part.dtype_policy.name for part in (layer, *parts(layer))}
    assert policies == {POLICY}
    layer.build()
    assert [part.path for part in parts(layer) if not part.built] == []
    sublayers = [part for part in parts(layer) if isinstance(part, Sublayer)]
    assert len(sublayers) > 1
    for part in sublayers:
        config = part.get_config()
        shared = [n for n in keyword_arguments(type(part)) if hasattr(layer.options, n)]
        if "memory" in part.name:  # which attends to all positions
            shared = [n for n in shared if n != "attention_neighbourhood"]
        assert {name: config[name] for name in shared} == {
            name: getattr(layer.options, name) for name in shared
        }


def test_an_attention_that_is_not_registered_is_refused_with_the_closest_names():
    options = DENSE | {"self_attention_type": "restrictd"}
    with pytest.raises(UsageError, match="Did you mean restricted"):
        EncoderLayer(**options)


def test_every_built_in_attention_is_declared_with_its_module():
    declared = {name: entry.module for name, entry in constants.SELF_ATTENTIONS.items()}
    classes = sublayers.SELF_ATTENTION_CLASSES.items()
    assert declared == {name: each.__module__ for name, each in classes}
