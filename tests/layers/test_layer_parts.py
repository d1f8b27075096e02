"""Every sublayer of a layer, stack or model has its dtype, its name and its options."""

from __future__ import annotations

from typing import Any

import pytest

from t2t_repro.layers import Decoder, Encoder, LayerOptions
from t2t_repro.layers.encoder_decoder import DecoderLayer, EncoderLayer
from t2t_repro.models.transformer import Transformer

DENSE: dict[str, Any] = {
    "hidden_size": 8,
    "filter_size": 12,
    "num_heads": 2,
    "attention_key_channels": 4,
    "attention_value_channels": 6,
    "norm": "pre",
    "parameter_attention_heads": 2,
    "parameter_attention_key_channels": 4,
    "parameter_attention_value_channels": 6,
}
KINDS = {
    "dense": DENSE,
    "post-norm": dict(DENSE, norm="post"),
    "additive": dict(DENSE, attention_compatibility="additive"),
    "attention over parameters": dict(DENSE, ffn_layer="parameter_attention"),
    "restricted": dict(
        DENSE, self_attention_type="restricted", attention_neighbourhood=3
    ),
    "split branches": dict(DENSE, branched_attention="split"),
    "shared branches": dict(DENSE, branched_attention="shared"),
    "branches with residuals inside": dict(
        DENSE, branched_attention="split", branch_residual="inside"
    ),
    "branches with a residual stream each": dict(
        DENSE, branched_attention="split", branch_residual="per_branch"
    ),
    "branches with one residual stream": dict(
        DENSE, branched_attention="split", branch_residual="shared"
    ),
    "branches in the decoder's self-attention": dict(
        DENSE, branched_attention="split", branched_in_decoder="self"
    ),
}
POLICY = "mixed_bfloat16"


def parts(layer):
    """Return all layers inside a layer, of any depth."""
    return [part for part in layer._flatten_layers() if part is not layer]


def made(layer_class, options=DENSE, **given):
    if layer_class in (Encoder, Decoder):
        given = {"num_layers": 1} | given
    return layer_class(**options, **given)


@pytest.mark.parametrize("layer_class", [Encoder, Decoder])
@pytest.mark.parametrize("kind", KINDS)
def test_every_part_of_a_layer_has_its_dtype(layer_class, kind):
    layer = made(layer_class, KINDS[kind], dtype=POLICY)
    others = [p.name for p in parts(layer) if p.dtype_policy.name != POLICY]
    assert layer.dtype_policy.name == POLICY
    assert len(parts(layer)) > 4
    assert others == []


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_every_part_of_a_model_has_its_dtype(tie_embeddings):
    model = Transformer(
        **DENSE,
        source_vocab_size=11,
        target_vocab_size=11,
        num_encoder_layers=1,
        num_decoder_layers=1,
        positions="learned",
        max_positions=5,
        tie_embeddings=tie_embeddings,
        dtype=POLICY,
    )
    others = [p.path for p in parts(model) if p.dtype_policy.name != POLICY]
    assert others == []
    assert {v.dtype for v in model.trainable_variables} == {"float32"}


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


@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer, Encoder, Decoder])
@pytest.mark.parametrize("trainable", [True, False])
def test_a_layer_is_trained_unless_it_is_frozen(layer_class, trainable):
    assert made(layer_class, trainable=trainable).trainable is trainable


@pytest.mark.parametrize("layer_class", [Encoder, Decoder])
@pytest.mark.parametrize("kind", KINDS)
def test_building_a_layer_makes_the_weights_of_all_its_parts(layer_class, kind):
    layer = made(layer_class, KINDS[kind])
    layer.build()
    assert [part.path for part in parts(layer) if not part.built] == []


@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer, Encoder, Decoder])
def test_a_layer_is_rebuilt_from_its_configuration(layer_class):
    layer = made(layer_class, KINDS["additive"], name="here", dtype=POLICY)
    again = layer_class.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert (again.options, again.name) == (layer.options, "here")


def test_a_model_hands_its_options_and_numbers_to_its_parts():
    model = Transformer(
        **DENSE,
        source_vocab_size=11,
        target_vocab_size=13,
        num_encoder_layers=1,
        num_decoder_layers=2,
        positions="learned",
        max_positions=5,
        tie_embeddings=False,
        name="here",
        trainable=False,
    )
    assert (model.name, model.trainable) == ("here", False)
    assert model.encoder.options == model.decoder.options == LayerOptions(**DENSE)
    assert (model.encoder.num_layers, model.decoder.num_layers) == (1, 2)
    tables = {
        name: getattr(model, name).table.shape
        for name in ("source_embedding", "target_embedding", "softmax")
    }
    assert tables == {
        "source_embedding": (11, 8),
        "target_embedding": (13, 8),
        "softmax": (13, 8),
    }
    for name in ("source_positions", "target_positions"):
        assert getattr(model, name).kind == "learned"
        assert getattr(model, name).table.shape == (5, 8)
    names = (
        *("source_embedding", "target_embedding", "softmax"),
        *("source_positions", "target_positions"),
        *("source_dropout", "target_dropout", "encoder", "decoder"),
    )
    assert [getattr(model, name).name for name in names] == [*names]
    config = Transformer.from_config(model.get_config()).get_config()
    assert config == model.get_config()


def test_tied_embeddings_are_one_layer_of_the_targets_vocabulary():
    sizes = {"source_vocab_size": 11, "target_vocab_size": 11}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(**DENSE, **sizes, **layers)
    assert model.source_embedding is model.target_embedding is model.softmax
    assert model.softmax.name == "shared_embedding"
    assert model.softmax.table.shape == (11, 8)
    assert (model.positions, model.max_positions) == ("interleaved", 0)


def test_embeddings_have_the_dropout_of_residuals():
    options = dict(DENSE, layer_prepostprocess_dropout=0.3, attention_dropout=0.2)
    model = Transformer(
        **options,
        source_vocab_size=11,
        target_vocab_size=11,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    assert (model.source_dropout.rate, model.target_dropout.rate) == (0.3, 0.3)
