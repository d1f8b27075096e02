"""Translate ids with OpenNMT-tf 2.32 and weights from `weights.py`.

Arguments: weights file, threads, batch size in sentences.

OpenNMT-tf has other special ids than this package, so its ids are ours plus one, from
EOS on, and its tokens are our ids as text:

    OpenNMT-tf   0 <blank>   1 <s>          2 </s>   3 "2"   4 "3"   ...   V + 1 <unk>
    ours         0 padding   (zero vector)  1 EOS    2       3       ...
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import opennmt
import tensorflow as tf
from worker import batches, serve

EXTRA_LENGTH = 50
LENGTH_PENALTY = 0.6
NEVER = -1e9
# Embedding rows before and after those of our ids from EOS on.
SPECIAL_TOKENS = ("<blank>", "<s>", "</s>")
FIRST_ID = 2  # the first id of ours that is an ordinary token
# Ours is 1e-6. TensorFlow's fused kernel, which OpenNMT-tf uses, takes no smaller one.
EPSILON = 1.001e-5
PROJECTIONS = {
    "q_proj": "linear_queries",
    "k_proj": "linear_keys",
    "v_proj": "linear_values",
    "out_proj": "linear_output",
}


def make_model(
    arrays: dict[str, np.ndarray], sizes: dict[str, int]
) -> opennmt.models.Transformer:
    """Make a post-norm Transformer with our weights."""
    vocab_size, width = arrays["embedding"].shape
    model = opennmt.models.Transformer(
        num_layers=sizes["layers"],
        num_units=width,
        num_heads=sizes["heads"],
        ffn_inner_dim=sizes["filter"],
        mha_bias=False,
        position_encoder_class=lambda: opennmt.layers.PositionEmbedder(
            maximum_position=len(arrays["positions"])
        ),
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocabulary.txt"
        tokens = (*SPECIAL_TOKENS, *map(str, range(FIRST_ID, vocab_size)))
        vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        files = {f"{side}_vocabulary": str(vocabulary) for side in ("source", "target")}
        model.initialize(files)
        model.create_variables()
    for layer in model.submodules:
        if isinstance(layer, opennmt.layers.LayerNorm):
            layer.epsilon = EPSILON  # instead of Keras's 1e-3
    set_embedding(model, arrays["embedding"])
    for side, stack in [("encoder", model.encoder), ("decoder", model.decoder)]:
        set_positions(stack, arrays["positions"])
        for number, layer in enumerate(stack.layers):
            set_layer(layer, arrays, f"model.{side}.layers.{number}")
    return model


def set_positions(stack: tf.Module, ours: np.ndarray) -> None:
    """Set the position encodings of the encoder or the decoder.

    OpenNMT-tf's sinusoids begin at position 1, and all sines come before all cosines.
    Ours are in a table, whose rows OpenNMT-tf counts from 1.
    """
    stack.position_encoder.embedding.assign(np.concatenate([ours[:1], ours]))


def set_embedding(model: opennmt.models.Transformer, table: np.ndarray) -> None:
    """Set the shared table, and forbid the output of all but EOS and our tokens.

    The embedding of `<s>` is zero: our decoder's first input is the zero vector.
    """
    zeros = np.zeros_like(table[:1])
    # <blank>, <s>, </s> and our tokens, <unk>
    rows = np.concatenate([zeros, zeros, table[1:], zeros])
    model.labels_inputter.embedding.assign(rows)
    never = [0, 1, len(rows) - 1]
    bias = np.zeros(len(rows), np.float32)
    bias[never] = NEVER
    model.decoder.output_layer.bias.assign(bias)


def set_layer(layer: tf.Module, arrays: dict[str, np.ndarray], name: str) -> None:
    """Set the weights of an encoder or decoder layer."""
    set_attention(layer.self_attention, arrays, name, "self_attn")
    if hasattr(layer, "attention"):
        set_attention(layer.attention[0], arrays, name, "encoder_attn")
    set_norm(layer.ffn, arrays, f"{name}.final_layer_norm")
    for dense, theirs in [
        (layer.ffn.layer.inner, "fc1"),
        (layer.ffn.layer.outer, "fc2"),
    ]:
        dense.kernel.assign(arrays[f"{name}.{theirs}.weight"].T)
        dense.bias.assign(arrays[f"{name}.{theirs}.bias"])


def set_attention(
    wrapper: tf.Module, arrays: dict[str, np.ndarray], name: str, part: str
) -> None:
    """Set the projections and the normalization of an attention sublayer."""
    for theirs, projection in PROJECTIONS.items():
        kernel = getattr(wrapper.layer, projection).kernel
        kernel.assign(arrays[f"{name}.{part}.{theirs}.weight"].T)
    set_norm(wrapper, arrays, f"{name}.{part}_layer_norm")


def set_norm(wrapper: tf.Module, arrays: dict[str, np.ndarray], name: str) -> None:
    """Set gain and bias of the normalization of a residual connection."""
    wrapper.output_layer_norm.gamma.assign(arrays[f"{name}.weight"])
    wrapper.output_layer_norm.beta.assign(arrays[f"{name}.bias"])


def make_inference(
    model: opennmt.models.Transformer, beam_size: int
) -> tf.types.experimental.GenericFunction:
    """Return the function that translates a batch, traced once for all lengths."""

    @tf.function(
        input_signature=[
            {
                "ids": tf.TensorSpec([None, None], tf.int64),
                "length": tf.TensorSpec([None], tf.int32),
            }
        ]
    )
    def infer(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        # The model reads them when it is traced.
        model.params.update(
            beam_width=beam_size,
            length_penalty=LENGTH_PENALTY,
            maximum_decoding_length=tf.shape(features["ids"])[1] + EXTRA_LENGTH,
        )
        return model.infer(features)

    return infer


def padded(sources: list[list[int]]) -> dict[str, tf.Tensor]:
    """Return a batch of sources with OpenNMT-tf's ids.

    Args:
        sources: Our ids, each with EOS at its end.
    """
    lengths = [len(ids) for ids in sources]
    ids = np.zeros((len(sources), max(lengths)), np.int64)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source)] = np.add(source, 1)
    return {"ids": tf.constant(ids), "length": tf.constant(lengths, tf.int32)}


def main(weights: str, threads: str, batch_size: str) -> None:
    """Load the weights and serve."""
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    with np.load(weights) as file:
        arrays = dict(file)
    sizes = json.loads(str(arrays.pop("sizes")))
    sources = json.loads(str(arrays.pop("sources")))
    model = make_model(arrays, sizes)
    inference: dict[int, tf.types.experimental.GenericFunction] = {}

    def translate(beam_size: int) -> list[list[int]]:
        if beam_size not in inference:
            inference[beam_size] = make_inference(model, beam_size)
        found: list[list[int]] = [[] for _ in sources]
        for batch in batches(sources, int(batch_size)):
            results = inference[beam_size](padded([ids for _, ids in batch]))
            tokens, lengths = results["tokens"].numpy(), results["length"].numpy()
            for (number, _), row, length in zip(batch, tokens, lengths, strict=True):
                found[number] = [int(token) for token in row[0, : length[0]]]
        return found

    serve(translate)


if __name__ == "__main__":
    main(*sys.argv[1:])
