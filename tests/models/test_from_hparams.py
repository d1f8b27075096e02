"""Every hparam of the model reaches its argument.

All values of a set differ, so that exchanged arguments are noticed.
"""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.layers import (
    BlockedAttention,
    BranchedAttention,
    FeedForward,
    LayerOptions,
    MultiHeadAttention,
    ParameterAttention,
)
from t2t_repro.layers.sublayers import OPTION_NAMES
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
OWN_SIZES = {
    "parameter_attention_heads": 4,
    "parameter_attention_key_channels": 20,
    "parameter_attention_value_channels": 20,
}
# hparams of a set -> options of other names or values; the others are equal
KINDS = {
    "attention over parameters, restricted, pre-norm": (
        {
            "attention_compatibility": "additive",
            "attention_bias": True,
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
    "another function in the network": (
        {"ffn_activation": "gelu"},
        {"parameter_attention_heads": 0},  # 0 means another setting.
        OWN_SIZES,
    ),
    "branches, all of them unlike the defaults": (
        {
            "branched_attention": "shared",
            "branched_in_decoder": "self",
            "branch_normalization": "softmax",
            "branch_top_k": 3,
            "branch_merged": True,
            "branch_residual": "inside",
            "branch_gain": "unit",
            "branch_weights_init": "near_uniform",
        },
        {"parameter_attention_heads": 0},
        OWN_SIZES,
    ),
}


# Hparams of the whole model and of the training run, which no layer takes.
OF_NO_LAYER = {
    *("activation_dtype", "decoder_start", "depth_positions"),
    *("encoder_input_bias", "layer_postprocess_sequence", "logit_bias"),
    *("layer_preprocess_sequence", "max_length", "num_decoder_layers"),
    *("num_encoder_layers", "num_hidden_layers", "pos", "symbol_dropout"),
    *("shared_embedding_and_softmax_weights", "word_positions"),
    *("batch_size", "length_bucket_step", "min_length_bucket", "packed_length"),
    *("packed_source_length", "update_tokens"),
    *("branch_frozen_after_steps", "branch_learning_rate_constant"),
    *("branch_learning_rate_warmup_steps", "learning_rate_constant"),
    *("learning_rate_decay_steps", "learning_rate_first_step"),
    *("learning_rate_schedule",),
    *("learning_rate_warmup_steps", "optimizer_adam_beta1", "optimizer_adam_beta2"),
    *("optimizer_adam_epsilon", "clip_grad_norm", "ema_decay"),
    *("label_smoothing", "rdrop_after_steps", "rdrop_weight"),
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


def test_every_option_has_a_value_above_and_every_other_hparam_is_of_no_layer():
    """An hparam that its layer does not take would have no effect."""
    given = {*OPTIONS}.union(*(changes | more for changes, _, more in KINDS.values()))
    assert given == OPTION_NAMES
    assert {*HParams.names()} - OPTION_NAMES == OF_NO_LAYER


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


def facts(built: Transformer) -> dict[str, object]:
    """Return what the hparams that are no options decide."""
    (encoder_layer,) = built.encoder.layers
    decoder_layer, *others = built.decoder.layers
    norms = [stack.final_normalization for stack in (built.encoder, built.decoder)]
    return {
        "decoder layers": 1 + len(others),
        "symbols": {built.source_symbols.rate, built.target_symbols.rate},
        "positions": {built.source_positions.kind, built.target_positions.kind},
        "counted": (built.source_counted, built.target_counted),
        "matrices": len(
            {built.source_embedding, built.target_embedding, built.softmax}
        ),
        "logit bias": built.softmax.logit_bias,
        "input bias": built.encoder_input_bias,
        "start": built.decoder_start,
        "policies": {part.dtype_policy.name for part in built._flatten_layers()},
        "norm": decoder_layer.memory_attention_residual.norm,
        "final epsilons": [None if norm is None else norm.epsilon for norm in norms],
        "encoder": _kind(encoder_layer.self_attention),
        "decoder": _kind(decoder_layer.self_attention),
        "memory": _kind(decoder_layer.memory_attention),
        "networks": {
            type(layer.feed_forward) for layer in (encoder_layer, decoder_layer)
        },
    }


def _kind(attention: MultiHeadAttention) -> tuple[type, int, bool]:
    return type(attention), attention.attention_neighbourhood, attention.causal


PLAIN, NONE = MultiHeadAttention, type(None)
FACTS = {
    "decoder layers": 3,
    "symbols": {0.0},
    "positions": {"interleaved"},
    "counted": ([], []),
    "matrices": 1,
    "logit bias": False,
    "input bias": False,
    "start": "zeros",
    "policies": {"float32"},
    "norm": "post",
    "final epsilons": [None, None],
    "encoder": (PLAIN, 0, False),
    "decoder": (PLAIN, 0, True),
    "memory": (PLAIN, 0, False),
    "networks": {FeedForward},
}


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, {}),
        ({"symbol_dropout": 0.4}, {"symbols": {0.4}}),
        ({"shared_embedding_and_softmax_weights": False}, {"matrices": 3}),
        ({"pos": "timing_concat"}, {"positions": {"concatenated"}}),
        ({"pos": "timing_halves"}, {"positions": {"halves"}}),
        ({"pos": "emb"}, {"positions": {"learned"}}),
        ({"logit_bias": True}, {"logit bias": True}),
        ({"encoder_input_bias": True}, {"input bias": True}),
        ({"decoder_start": "pad"}, {"start": "pad"}),
        ({"pos": "none"}, {"positions": {"none"}}),
        ({"activation_dtype": "bfloat16"}, {"policies": {"mixed_bfloat16"}}),
        ({"activation_dtype": "float16"}, {"policies": {"mixed_float16"}}),
        (
            {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"},
            {"norm": "pre", "final epsilons": [1e-3, 1e-3]},
        ),
        (
            {"self_attention_type": "restricted", "attention_neighbourhood": 7},
            {
                "encoder": (BlockedAttention, 7, False),
                "decoder": (BlockedAttention, 7, True),
            },
        ),
        (
            {"self_attention_type": "restricted_masked", "attention_neighbourhood": 7},
            {"encoder": (PLAIN, 7, False), "decoder": (PLAIN, 7, True)},
        ),
        (
            {"branched_attention": "split", "branched_in_decoder": "memory"},
            {
                "encoder": (BranchedAttention, 0, False),
                "memory": (BranchedAttention, 0, False),
                "networks": {NONE},
            },
        ),
        (
            {"branched_attention": "split", "branched_in_decoder": "self"},
            {
                "encoder": (BranchedAttention, 0, False),
                "decoder": (BranchedAttention, 0, True),
                "networks": {NONE},
            },
        ),
        ({"ffn_layer": "parameter_attention"}, {"networks": {ParameterAttention}}),
    ],
)
def test_an_hparam_changes_its_part_on_both_sides_and_no_other(changes, changed):
    assert facts(model(**changes)) == FACTS | changed
