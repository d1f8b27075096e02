"""Write a Transformer's weights into the specification of a CTranslate2 model.

CTranslate2 (https://github.com/OpenNMT/CTranslate2) is a C++ engine for inference. This
module maps the weights of figure 1 to its `TransformerSpec`; `check_expressible`
refuses models without such a mapping.
"""

from __future__ import annotations

from typing import Any

import keras
import ml_dtypes
import numpy as np
from ctranslate2.specs import attention_spec, common_spec, transformer_spec
from keras import ops

from t2t_repro.constants import EOS_ID, PAD_ID, Activation
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.positions import LEARNED, sinusoidal_positions
from t2t_repro.text.tokenizer import Tokenizer, distinct_entries

# Bias of PAD before the softmax: probability zero in float32, and finite in float16.
PAD_BIAS = -3e4
_ACTIVATIONS: dict[Activation, common_spec.Activation] = {
    "relu": common_spec.Activation.RELU,
    "swish": common_spec.Activation.SWISH,
    "gelu": common_spec.Activation.GELU,
}


def model_spec(
    model: keras.Model,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    positions: int,
) -> transformer_spec.TransformerSpec:
    """Describe a model for CTranslate2, with copies of its weights.

    Quantization overwrites the arrays of a specification, hence the copies.
    Differs from our model: PAD has no probability. Our search never writes PAD either,
    but its log-probabilities count PAD in the sum of the softmax.

    Args:
        model: A `Transformer` that `check_expressible` accepts.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the targets.
        positions: Number of rows of the tables of positions: the longest source or
            target in tokens, including EOS.

    Returns:
        A specification with all its weights and both vocabularies.
    """
    spec = transformer_spec.TransformerSpec.from_config(
        (model.encoder.num_layers, model.decoder.num_layers),
        model.options.num_heads,
        pre_norm=model.options.norm == "pre",
        activation=_ACTIVATIONS[model.options.ffn_activation],
    )
    _set_ends(spec, model, positions)
    for layer, ours in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _set_self_attention(layer, ours)
        _set_feed_forward(layer.ffn, ours)
    for layer, ours in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _set_self_attention(layer, ours)
        _set_memory_attention(layer, ours)
        _set_feed_forward(layer.ffn, ours)
    if model.options.norm == "pre":
        _set_norm(spec.encoder.layer_norm, model.encoder.final_normalization)
        _set_norm(spec.decoder.layer_norm, model.decoder.final_normalization)
    spec.register_source_vocabulary(distinct_entries(source_tokenizer))
    spec.register_target_vocabulary(distinct_entries(target_tokenizer))
    _configure(spec.config, model, target_tokenizer)
    return spec


def write_model(
    spec: transformer_spec.TransformerSpec, folder: str, quantization: str
) -> None:
    """Write a specification into an existing folder.

    Args:
        spec: From `model_spec`; its arrays are quantized in place.
        folder: Folder for model.bin, config.json and the vocabularies.
        quantization: A name of `QUANTIZATIONS`.
    """
    spec.validate()
    if quantization.endswith("bfloat16"):
        _cast_to_bfloat16(spec, with_matrices=quantization == "bfloat16")
    spec.optimize(quantization=quantization)
    spec.save(folder)


def _cast_to_bfloat16(
    spec: transformer_spec.TransformerSpec, *, with_matrices: bool
) -> None:
    """Cast variables as CTranslate2 would, which needs PyTorch for it."""
    for name, variable in spec.variables().items():
        is_matrix = name.endswith("/weight")
        if not variable.is_scalar() and (with_matrices or not is_matrix):
            variable.array = variable.array.astype(ml_dtypes.bfloat16)


def _configure(config: Any, model: keras.Model, target_tokenizer: Tokenizer) -> None:
    """Name the special tokens; one outside the vocabulary would get an id past it."""
    end = target_tokenizer.pieces([EOS_ID])[0]
    # Every text of ours has ids, so the engine never needs it.
    unknown_id = target_tokenizer.unknown_id
    config.unk_token = target_tokenizer.pieces([unknown_id or EOS_ID])[0]
    config.bos_token = config.eos_token = end
    # Any token will do if the decoder starts from a zero vector.
    start = PAD_ID if model.decoder_start == "pad" else EOS_ID
    config.decoder_start_token = target_tokenizer.pieces([start])[0]
    config.layer_norm_epsilon = model.options.norm_epsilon


def _set_ends(
    spec: transformer_spec.TransformerSpec, model: keras.Model, positions: int
) -> None:
    """Set embeddings, positions and the projection before the softmax.

    Tied matrices stay tied: CTranslate2 stores equal arrays once.
    """
    options = model.options
    spec.encoder.embeddings[0].weight = _copy(model.source_embedding.table)
    spec.decoder.embeddings.weight = _copy(model.target_embedding.table)
    spec.decoder.projection.weight = _copy(model.softmax.table)
    bias = np.zeros(model.target_vocab_size, np.float32)
    if model.logit_bias:
        bias = _copy(model.softmax.bias)
    bias[PAD_ID] = PAD_BIAS
    spec.decoder.projection.bias = bias
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = True
    spec.decoder.start_from_zero_embedding = model.decoder_start == "zeros"
    for ours, theirs in (
        (model.source_positions, spec.encoder.position_encodings),
        (model.target_positions, spec.decoder.position_encodings),
    ):
        theirs.encodings = _position_table(ours, positions, options.hidden_size)
    if model.encoder_input_bias:
        # A sum, like the encodings.
        spec.encoder.position_encodings.encodings += _copy(model.source_bias)


def _position_table(
    layer: keras.layers.Layer, positions: int, hidden_size: int
) -> np.ndarray:
    """Return the encodings of positions 0, 1, ...; CTranslate2's own begin at 1.

    Returns:
        float32 `[positions, hidden_size]`.
    """
    if layer.kind in LEARNED:
        table = np.zeros((positions, hidden_size), np.float32)
        learned = _copy(layer.table)[:positions]
        table[: len(learned)] = learned
        return table
    if layer.kind == "none":
        return np.zeros((positions, hidden_size), np.float32)
    signal = sinusoidal_positions(ops.arange(positions), hidden_size, layer.kind)
    return np.array(ops.convert_to_numpy(signal))


def _set_self_attention(spec: Any, layer: Any) -> None:
    attention = layer.self_attention
    spec.self_attention = attention_spec.MultiHeadAttentionSpec(
        self_attention=True, head_dim=_depth(attention)
    )
    query, key, value = _projections(attention)
    inputs, output = spec.self_attention.linear
    inputs.weight = np.concatenate([query, key, value])
    output.weight = _output_projection(attention)
    if attention.attention_bias:
        inputs.bias = np.concatenate(_biases(attention))
        output.bias = _copy(attention.output_projection.bias)
    _scale(spec.self_attention, attention)
    _set_norm(
        spec.self_attention.layer_norm, layer.self_attention_residual.normalization
    )


def _set_memory_attention(spec: Any, layer: Any) -> None:
    attention = layer.memory_attention
    spec.attention = attention_spec.MultiHeadAttentionSpec(head_dim=_depth(attention))
    query, key, value = _projections(attention)
    queries, memory, output = spec.attention.linear
    queries.weight = query
    memory.weight = np.concatenate([key, value])
    output.weight = _output_projection(attention)
    if attention.attention_bias:
        queries.bias, *both = _biases(attention)
        memory.bias = np.concatenate(both)
        output.bias = _copy(attention.output_projection.bias)
    _scale(spec.attention, attention)
    _set_norm(spec.attention.layer_norm, layer.memory_attention_residual.normalization)


def _scale(spec: Any, attention: MultiHeadAttention) -> None:
    depth = attention.attention_key_channels // attention.num_heads
    is_scaled = attention.attention_compatibility == "scaled_dot_product"
    spec.queries_scale = np.float32(depth**-0.5 if is_scaled else 1.0)


def _projections(attention: MultiHeadAttention) -> list[np.ndarray]:
    """Return W^Q, W^K and W^V, `[heads * depth, hidden_size]`.

    CTranslate2 has one depth, so the heads of the narrower ones get zeros at the end,
    which change neither a product of queries and keys nor a sum of values.
    """
    depth = _depth(attention)
    return [
        _pad_heads(_copy(layer.kernel).T, attention.num_heads, depth)
        for layer in _input_projections(attention)
    ]


def _biases(attention: MultiHeadAttention) -> list[np.ndarray]:
    """Return the biases of queries, keys and values, `[heads * depth]`, as above."""
    depth = _depth(attention)
    return [
        _pad_heads(_copy(layer.bias)[:, None], attention.num_heads, depth)[:, 0].copy()
        for layer in _input_projections(attention)
    ]


def _input_projections(attention: MultiHeadAttention) -> list[keras.layers.Dense]:
    return [
        attention.query_projection,
        attention.key_projection,
        attention.value_projection,
    ]


def _output_projection(attention: MultiHeadAttention) -> np.ndarray:
    """Return W^O, `[hidden_size, heads * depth]`."""
    kernel = _copy(attention.output_projection.kernel)
    return _pad_heads(kernel, attention.num_heads, _depth(attention)).T.copy()


def _depth(attention: MultiHeadAttention) -> int:
    channels = max(attention.attention_key_channels, attention.attention_value_channels)
    return channels // attention.num_heads


def _pad_heads(matrix: np.ndarray, num_heads: int, depth: int) -> np.ndarray:
    """Pad every head of `[heads * own depth, width]` to `[heads * depth, width]`."""
    heads = matrix.reshape(num_heads, -1, matrix.shape[1])
    missing = depth - heads.shape[1]
    padded = np.pad(heads, [(0, 0), (0, missing), (0, 0)])
    return padded.reshape(num_heads * depth, matrix.shape[1])


def _set_feed_forward(spec: Any, layer: Any) -> None:
    network = layer.feed_forward
    for target, ours in (
        (spec.linear_0, network.filter),
        (spec.linear_1, network.output_projection),
    ):
        target.weight = _copy(ours.kernel).T.copy()
        target.bias = _copy(ours.bias)
    _set_norm(spec.layer_norm, layer.feed_forward_residual.normalization)


def _set_norm(spec: Any, normalization: Any) -> None:
    spec.gamma = _copy(normalization.gamma)
    spec.beta = _copy(normalization.beta)


def _copy(variable: keras.Variable) -> np.ndarray:
    """Return the value of a variable as a new float32 array."""
    return np.array(variable.numpy(), np.float32, copy=True)
