"""Write the weights of a run and the ids of a text, for the other engines.

python benchmarks/decoding/weights.py OUTPUT_DIR CHECKPOINT SOURCE WEIGHTS.npz
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import keras
import numpy as np

from t2t_repro.constants import EOS_ID
from t2t_repro.runs import System

# Layer -> name of Hugging Face's Marian.
PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
MAX_POSITIONS = 1024


def attention_weights(layer: keras.layers.Layer, name: str) -> dict[str, np.ndarray]:
    """Return the matrices of an attention sublayer, transposed as PyTorch wants."""
    return {
        f"{name}.{theirs}.weight": np.array(
            getattr(layer, f"{ours}_projection").kernel
        ).T
        for ours, theirs in PROJECTIONS.items()
    }


def norm_weights(layer: keras.layers.Layer, name: str) -> dict[str, np.ndarray]:
    """Return gain and bias of the normalization of a residual connection."""
    norm = layer.normalization
    return {f"{name}.weight": np.array(norm.gamma), f"{name}.bias": np.array(norm.beta)}


def layer_weights(layer: keras.layers.Layer, name: str) -> dict[str, np.ndarray]:
    """Return the weights of an encoder or decoder layer."""
    feed_forward = layer.feed_forward
    found = attention_weights(layer.self_attention, f"{name}.self_attn")
    found |= norm_weights(layer.self_attention_residual, f"{name}.self_attn_layer_norm")
    for theirs, dense in [
        ("fc1", feed_forward.filter),
        ("fc2", feed_forward.output_projection),
    ]:
        found[f"{name}.{theirs}.weight"] = np.array(dense.kernel).T
        found[f"{name}.{theirs}.bias"] = np.array(dense.bias)
    found |= norm_weights(layer.feed_forward_residual, f"{name}.final_layer_norm")
    if hasattr(layer, "memory_attention"):
        found |= attention_weights(layer.memory_attention, f"{name}.encoder_attn")
        found |= norm_weights(
            layer.memory_attention_residual, f"{name}.encoder_attn_layer_norm"
        )
    return found


def main(output_dir: str, checkpoint: str, source: str, weights: str) -> None:
    """Write the file."""
    system = System.load(output_dir, checkpoint)
    model = system.model
    arrays = {
        "embedding": np.array(model.target_embedding.table),
        "positions": np.array(model.source_positions(np.arange(MAX_POSITIONS))),
    }
    for side, stack in [("encoder", model.encoder), ("decoder", model.decoder)]:
        for number, layer in enumerate(stack.layers):
            arrays |= layer_weights(layer, f"model.{side}.layers.{number}")
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    sources = [[*ids, EOS_ID] for ids in system.source_tokenizer.encode_batch(lines)]
    sizes = {
        "layers": model.encoder.num_layers,
        "heads": model.options.num_heads,
        "filter": model.options.filter_size,
    }
    np.savez(weights, sizes=json.dumps(sizes), sources=json.dumps(sources), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
