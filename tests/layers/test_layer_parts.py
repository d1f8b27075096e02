"""Every sublayer of a layer or stack has its dtype, its name and its options."""

from __future__ import annotations

from typing import Any

import pytest

from t2t_repro import constants
from t2t_repro.errors import UsageError
from t2t_repro.layers import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    sublayers,
)
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


def made(layer_class, options=DENSE, **given):
    if layer_class in (Encoder, Decoder):
        given = {"num_layers": 1} | given
    return layer_class(**options, **given)


@pytest.mark.parametrize("layer_class", [Encoder, Decoder])
@pytest.mark.parametrize("kind", KINDS)
def test_every_part_has_the_dtype_options_and_weights_of_the_arguments(
    layer_class, kind
):
    layer = made(layer_class, KINDS[kind], dtype=POLICY)
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


SELF = ("self_attention", "self_attention_residual")
NETWORK = ("feed_forward", "feed_forward_residual")
MEMORY = ("memory_attention", "memory_attention_residual")


@pytest.mark.parametrize(
    ("layer_class", "kind", "names"),
    [
        (EncoderLayer, "dense", (*SELF, *NETWORK)),
        (EncoderLayer, "split branches", SELF),
        (DecoderLayer, "dense", (*SELF, *NETWORK, *MEMORY)),
        (DecoderLayer, "split branches", (*SELF, *MEMORY)),
    ],
)
def test_sublayers_are_named_after_their_attributes_in_their_order(
    layer_class, kind, names
):
    """Names are part of checkpoints; the order decides the weights of a seed."""
    layer = made(layer_class, KINDS[kind], name="here")
    assert layer.name == "here"
    children = [*layer._flatten_layers(include_self=False, recursive=False)]
    assert [child.name for child in children] == [*names]
    assert [getattr(layer, name) for name in names] == children


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_the_layers_of_a_stack_are_numbered(stack):
    layer = made(stack, name="here", num_layers=2)
    assert layer.name == "here"
    assert [each.name for each in layer.layers] == ["layer_0", "layer_1"]
    assert layer.final_normalization.name == "final_normalization"
