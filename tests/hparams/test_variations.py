"""Every value of every row, written a second time, and its exact parameter count."""

from __future__ import annotations

import functools

import pytest
import tensorflow as tf

from t2t_repro import catalogue, registry
from t2t_repro.errors import UsageError
from t2t_repro.models.estimates import parameter_count
from t2t_repro.models.transformer import Transformer

# Set -> differences from the base model, and its parameters at 37,000 subwords.
ROWS = {
    "a_h1": ({"num_heads": 1}, 63_045_632),
    "a_h4": ({"num_heads": 4}, 63_045_632),
    "a_h16": ({"num_heads": 16}, 63_045_632),
    "a_h32": ({"num_heads": 32}, 63_045_632),
    "b_dk16": ({"attention_key_channels": 8 * 16}, 55_967_744),
    "b_dk32": ({"attention_key_channels": 8 * 32}, 58_327_040),
    "c_n2": ({"num_hidden_layers": 2}, 33_644_544),
    "c_n4": ({"num_hidden_layers": 4}, 48_345_088),
    "c_n8": ({"num_hidden_layers": 8}, 77_746_176),
    "c_d256": ({"hidden_size": 256}, 26_816_512),
    "c_d1024": ({"hidden_size": 1024}, 163_815_424),
    "c_dff1024": ({"filter_size": 1024}, 50_450_432),
    "c_dff4096": ({"filter_size": 4096}, 88_236_032),
    "d_dr0": ({"layer_prepostprocess_dropout": 0.0}, 63_045_632),
    "d_dr2": ({"layer_prepostprocess_dropout": 0.2}, 63_045_632),
    "d_ls0": ({"label_smoothing": 0.0}, 63_045_632),
    "d_ls2": ({"label_smoothing": 0.2}, 63_045_632),
    "e_learned": ({"pos": "emb"}, 63_045_632 + 2 * 256 * 512),
    "aop1": (
        {
            "ffn_layer": "parameter_attention",
            "filter_size": 1536,
            "parameter_attention_heads": 8,
            "parameter_attention_key_channels": 8 * 64,
            "parameter_attention_value_channels": 8 * 64,
        },
        # no biases where the feed-forward network has 2,560 per layer
        63_045_632 - 12 * 2_560,
    ),
    "aop2": (
        {
            "ffn_layer": "parameter_attention",
            "filter_size": 512,
            "parameter_attention_heads": 16,
            "parameter_attention_key_channels": 16 * 64,
            "parameter_attention_value_channels": 16 * 64,
        },
        63_045_632 - 12 * 2_560,
    ),
}


# tensor2tensor's name -> ours
ALIASES = {
    "transformer_big_dr1": "transformer_big_enfr",
    "transformer_big_dr3": "transformer_big",
    "transformer_dr0": "transformer_base_d_dr0",
    "transformer_dr2": "transformer_base_d_dr2",
    "transformer_ff1024": "transformer_base_c_dff1024",
    "transformer_ff4096": "transformer_base_c_dff4096",
    "transformer_h1": "transformer_base_a_h1",
    "transformer_h16": "transformer_base_a_h16",
    "transformer_h32": "transformer_base_a_h32",
    "transformer_h4": "transformer_base_a_h4",
    "transformer_hs1024": "transformer_base_c_d1024",
    "transformer_hs256": "transformer_base_c_d256",
    "transformer_k128": "transformer_base_b_dk16",
    "transformer_k256": "transformer_base_b_dk32",
    "transformer_l2": "transformer_base_c_n2",
    "transformer_l4": "transformer_base_c_n4",
    "transformer_l8": "transformer_base_c_n8",
    "transformer_ls0": "transformer_base_d_ls0",
    "transformer_ls2": "transformer_base_d_ls2",
    "transformer_parameter_attention_a": "transformer_base_aop1",
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_the_base_model_with_its_change(row):
    base = catalogue.hparams("transformer_base")
    changes = base.diff(catalogue.hparams(f"transformer_base_{row}"))
    assert {name: value for name, (_, value) in changes.items()} == ROWS[row][0]


@functools.cache  # Some rows change only the number of layers or the training run.
def parameters_with(layers, hparams):
    """Count the parameters of a model with so many layers on each side."""
    # Variables of a graph take no memory before a session runs it.
    with tf.Graph().as_default():
        hparams = hparams.replace(num_hidden_layers=layers)
        return Transformer.from_hparams(hparams, 37_000, 37_000).count_params()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_its_parameters(row):
    hparams = catalogue.hparams(f"transformer_base_{row}")
    expected = ROWS[row][1]
    assert parameter_count(hparams, 37_000, 37_000) == expected
    # All layers of a side have the same size.
    same = hparams.replace(label_smoothing=0.0, num_hidden_layers=1)
    one, two = (parameters_with(layers, same) for layers in (1, 2))
    assert one + (hparams.num_hidden_layers - 1) * (two - one) == expected


@pytest.mark.parametrize("alias", ALIASES)
def test_tensor2tensors_names_are_accepted_if_they_mean_the_same(alias):
    assert catalogue.hparams(alias) == catalogue.hparams(ALIASES[alias])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("transformer_parameter_attention_b", "transformer_base_aop2"),
        ("transformer_l10", "num_hidden_layers=10"),
        ("transformer_base_v2", "transformer_base_v3"),
    ],
)
def test_other_names_are_refused_with_an_explanation(name, answer):
    catalogue.load()
    with pytest.raises(UsageError, match=answer):
        registry.hparams_sets.get(name)
