"""Layers against PyTorch's, whose weights and outputs are kept in a golden file."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

from t2t_repro.layers import (
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "torch_layers.npz"
HEADS = {"num_heads": 2, "attention_key_channels": 8, "attention_value_channels": 8}
LAYER = {"hidden_size": 8, "filter_size": 12, "norm_epsilon": 1e-6, **HEADS}

# PyTorch's names -> ours, inside a layer
ENCODER_NAMES = {
    "linear1.weight": "feed_forward/filter/kernel",
    "linear1.bias": "feed_forward/filter/bias",
    "linear2.weight": "feed_forward/output/kernel",
    "linear2.bias": "feed_forward/output/bias",
    "norm1.weight": "self_attention_residual/normalization/gamma",
    "norm1.bias": "self_attention_residual/normalization/beta",
    "norm2.weight": "feed_forward_residual/normalization/gamma",
    "norm2.bias": "feed_forward_residual/normalization/beta",
}
DECODER_NAMES = ENCODER_NAMES | {
    "norm2.weight": "memory_attention_residual/normalization/gamma",
    "norm2.bias": "memory_attention_residual/normalization/beta",
    "norm3.weight": "feed_forward_residual/normalization/gamma",
    "norm3.bias": "feed_forward_residual/normalization/beta",
}


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


@pytest.fixture
def memory_mask(golden) -> np.ndarray:
    lengths = golden["source_lengths"]
    return (np.arange(max(lengths)) < lengths[:, None])[:, None, None, :]


def part(golden: dict[str, np.ndarray], case: str) -> dict[str, np.ndarray]:
    return {
        name.partition("/")[2]: array
        for name, array in golden.items()
        if name.startswith(f"{case}/")
    }


def attention_weights(arrays: dict[str, np.ndarray], prefix: str) -> dict:
    """Split PyTorch's stacked `[3 d, d]` projection; its matrices are `[out, in]`."""
    stacked = arrays[f"{prefix}in_proj_weight"]
    names = ("query/kernel", "key/kernel", "value/kernel")
    weights = {n: w.T for n, w in zip(names, np.split(stacked, 3), strict=True)}
    return weights | {"output/kernel": arrays[f"{prefix}out_proj.weight"].T}


def layer_weights(arrays: dict, names: dict[str, str], attentions: dict) -> dict:
    weights = {ours: arrays[torchs].T for torchs, ours in names.items()}
    for torchs, ours in attentions.items():
        for name, array in attention_weights(arrays, f"{torchs}.").items():
            weights[f"{ours}/{name}"] = array
    return weights


def assign(layer: keras.layers.Layer, weights: dict[str, np.ndarray]) -> None:
    layer.build()
    variables = {v.path.partition("/")[2]: v for v in layer.trainable_weights}
    assert set(variables) == set(weights)
    for name, variable in variables.items():
        variable.assign(weights[name])


def test_attention_and_its_weights_equal_pytorchs(golden, memory_mask):
    arrays = part(golden, "attention")
    attention = MultiHeadAttention(hidden_size=8, **HEADS)
    assign(attention, attention_weights(arrays, ""))
    inputs = arrays["query"], arrays["memory"], memory_mask
    output, weights = attention(*inputs, return_attention_scores=True)
    np.testing.assert_allclose(output, arrays["output"], atol=1e-5)
    np.testing.assert_allclose(weights, arrays["attention_weights"], atol=1e-6)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_encoder_layer_equals_pytorchs(golden, memory_mask, norm):
    arrays = part(golden, "encoder_layer")
    layer = EncoderLayer(norm=norm, **LAYER)
    assign(layer, layer_weights(arrays, ENCODER_NAMES, {"self_attn": "self_attention"}))
    output = layer(arrays["x"], memory_mask).numpy()
    real = memory_mask[:, 0, 0]
    np.testing.assert_allclose(
        output[real], arrays[f"output_{norm}"][real], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_layer_equals_pytorchs(golden, memory_mask, norm):
    arrays = part(golden, "decoder_layer")
    layer = DecoderLayer(norm=norm, **LAYER)
    attentions = {"self_attn": "self_attention", "multihead_attn": "memory_attention"}
    assign(layer, layer_weights(arrays, DECODER_NAMES, attentions))
    output = layer(arrays["x"], arrays["memory"], memory_mask)
    np.testing.assert_allclose(output, arrays[f"output_{norm}"], rtol=1e-5, atol=1e-5)
