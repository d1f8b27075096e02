"""Every hparam of the model reaches its argument.

All values of a set differ, so that exchanged arguments are noticed.
"""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.layers import (
    BlockedAttention,
    BranchedAttention,
    LayerOptions,
    MultiHeadAttention,
    ParameterAttention,
)
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams

SIZES = {
    "hidden_size": 20,
    "filter_size": 36,
    "num_heads": 4,
    "num_hidden_layers": 5,
    "num_encoder_layers": 1,
    "num_decoder_layers": 3,
    "attention_key_channels": 8,
    "attention_value_channels": 12,
    "norm_epsilon": 1e-3,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.2,
    "relu_dropout": 0.3,
    "max_length": 9,
}
# Not options of the layers.
OTHERS = {"num_hidden_layers", "num_encoder_layers", "num_decoder_layers", "max_length"}
OPTIONS = {name: value for name, value in SIZES.items() if name not in OTHERS}
# hparams of a set -> options of other names or values; the others are equal
KINDS = {
    "attention over parameters, restricted, pre-norm": (
        {
            "attention_compatibility": "additive",
            "self_attention_type": "restricted",
            "attention_neighbourhood": 7,
            "ffn_layer": "parameter_attention",
            "parameter_attention_heads": 2,
            "parameter_attention_key_channels": 16,
            "parameter_attention_value_channels": 28,
        },
        {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"},
        {"norm": "pre"},
    ),
    "branches, all of them unlike the defaults": (
        {
            "branched_attention": "shared",
            "branched_in_decoder": "self",
            "branch_normalization": "softmax",
            "branch_top_k": 3,
            "branch_residual": "inside",
            "branch_gain": "unit",
            "branch_weights_init": "near_uniform",
        },
        {"parameter_attention_heads": 0},  # 0 means another setting.
        {
            "parameter_attention_heads": 4,
            "parameter_attention_key_channels": 20,
            "parameter_attention_value_channels": 20,
        },
    ),
}


def hparams(**changes) -> HParams:
    return catalogue.hparams("transformer_base").replace(**(SIZES | changes))


def model(**changes) -> Transformer:
    return Transformer.from_hparams(hparams(**changes), 11, 11)


@pytest.mark.parametrize("kind", KINDS)
def test_both_stacks_and_all_their_layers_have_the_options(kind):
    changes, others, options = KINDS[kind]
    built = model(**changes, **others)
    expected = LayerOptions(**(OPTIONS | changes | options))
    for stack in (built.encoder, built.decoder):
        assert {part.options for part in (built, stack, *stack.layers)} == {expected}


def test_a_stack_has_its_own_number_of_layers():
    built = model()
    assert (len(built.encoder.layers), len(built.decoder.layers)) == (1, 3)


def test_both_sides_drop_symbols():
    built = model(symbol_dropout=0.4)
    assert (built.source_symbols.rate, built.target_symbols.rate) == (0.4, 0.4)
    built = model()
    assert (built.source_symbols.rate, built.target_symbols.rate) == (0, 0)


COUNTERS = TokenCounters(
    (TokenCounter((2, 4)),), (TokenCounter((3,)), TokenCounter((5,), (6, 7)))
)


def test_each_side_has_its_counters():
    counting = hparams(
        word_positions=True,
        depth_positions=True,
        shared_embedding_and_softmax_weights=False,
    )
    built = Transformer.from_hparams(counting, 11, 13, COUNTERS)
    (source,) = built.source_counted
    words, depth = built.target_counted
    assert (source.plus, source.minus, source.vocab_size) == ((2, 4), (), 11)
    assert (words.plus, words.minus, words.vocab_size) == ((3,), (), 13)
    assert (depth.plus, depth.minus, depth.hidden_size) == ((5,), (6, 7), 20)
    assert (words.columns, depth.columns) == ("reversed", "rolled")


def test_without_counters_positions_are_counted_in_tokens():
    built = model()
    assert (built.source_counted, built.target_counted) == ([], [])


@pytest.mark.parametrize("name", ["word_positions", "depth_positions"])
def test_other_positions_need_counters(name):
    with pytest.raises(ValueError, match="need `counters`"):
        Transformer.from_hparams(hparams(**{name: True}), 11, 13)


def test_every_part_of_the_embeddings_has_its_size():
    tied = {"shared_embedding_and_softmax_weights": False, "pos": "emb"}
    built = Transformer.from_hparams(hparams(**tied), 11, 13)
    assert built.source_embedding.table.shape == (11, 20)
    assert built.target_embedding.table.shape == (13, 20)
    assert built.softmax.table.shape == (13, 20)
    assert built.source_positions.table.shape == (9, 20)
    assert built.target_positions.table.shape == (9, 20)
    assert (built.source_dropout.rate, built.target_dropout.rate) == (0.1, 0.1)


@pytest.mark.parametrize("tied", [True, False])
def test_the_three_matrices_are_one_if_they_are_tied(tied):
    built = model(shared_embedding_and_softmax_weights=tied)
    tables = {built.source_embedding, built.target_embedding, built.softmax}
    assert len(tables) == (1 if tied else 3)


@pytest.mark.parametrize(
    ("pos", "kind"),
    [
        ("timing", "interleaved"),
        ("timing_concat", "concatenated"),
        ("emb", "learned"),
        ("none", "none"),
    ],
)
def test_pos_is_the_kind_of_the_positions_of_both_sides(pos, kind):
    built = model(pos=pos)
    assert built.source_positions.kind == built.target_positions.kind == kind


@pytest.mark.parametrize(
    ("activation_dtype", "policy"),
    [
        ("float32", "float32"),
        ("bfloat16", "mixed_bfloat16"),
        ("float16", "mixed_float16"),
    ],
)
def test_activation_dtype_is_the_policy_of_every_part(activation_dtype, policy):
    built = model(activation_dtype=activation_dtype)
    parts = [
        built,
        built.source_embedding,
        built.target_positions,
        built.encoder.layers[0].self_attention.query_projection,
        built.encoder.layers[0].feed_forward.filter,
        built.decoder.layers[2].memory_attention_residual.normalization,
    ]
    assert {part.dtype_policy.name for part in parts} == {policy}


@pytest.mark.parametrize(
    ("pre", "post", "norm"), [("none", "dan", "post"), ("n", "da", "pre")]
)
def test_the_sequences_are_pre_norm_or_post_norm(pre, post, norm):
    sequences = {"layer_preprocess_sequence": pre, "layer_postprocess_sequence": post}
    built = model(**sequences)
    assert built.decoder.layers[0].memory_attention_residual.norm == norm
    for stack in (built.encoder, built.decoder):
        assert (stack.final_normalization is not None) == (norm == "pre")
        if norm == "pre":
            assert stack.final_normalization.epsilon == 1e-3


@pytest.mark.parametrize(
    ("self_attention_type", "layer_class", "neighbourhood"),
    [
        ("dot_product", MultiHeadAttention, 0),
        ("restricted", BlockedAttention, 7),
        ("restricted_masked", MultiHeadAttention, 7),
    ],
)
def test_self_attention_type_applies_only_to_self_attention(
    self_attention_type, layer_class, neighbourhood
):
    built = model(
        self_attention_type=self_attention_type, attention_neighbourhood=neighbourhood
    )
    (encoder_layer,), (decoder_layer, *_) = built.encoder.layers, built.decoder.layers
    for attention in (encoder_layer.self_attention, decoder_layer.self_attention):
        assert type(attention) is layer_class
        assert attention.attention_neighbourhood == neighbourhood
    assert type(decoder_layer.memory_attention) is MultiHeadAttention
    assert decoder_layer.memory_attention.attention_neighbourhood == 0
    causal = [
        encoder_layer.self_attention.causal,
        decoder_layer.self_attention.causal,
        decoder_layer.memory_attention.causal,
    ]
    assert causal == [False, True, False]


@pytest.mark.parametrize("in_decoder", ["memory", "self"])
def test_one_attention_of_a_decoder_layer_is_branched(in_decoder):
    built = model(branched_attention="split", branched_in_decoder=in_decoder)
    (encoder_layer,), (decoder_layer, *_) = built.encoder.layers, built.decoder.layers
    assert type(encoder_layer.self_attention) is BranchedAttention
    branched = {
        "self": type(decoder_layer.self_attention) is BranchedAttention,
        "memory": type(decoder_layer.memory_attention) is BranchedAttention,
    }
    assert [name for name, is_branched in branched.items() if is_branched] == [
        in_decoder
    ]
    assert encoder_layer.feed_forward is decoder_layer.feed_forward is None


def test_ffn_layer_chooses_the_sublayer_of_both_stacks():
    built = model(ffn_layer="parameter_attention")
    for layer in (*built.encoder.layers, *built.decoder.layers):
        assert type(layer.feed_forward) is ParameterAttention
