"""Translate ids with Hugging Face's MarianMT and weights from `weights.py`.

Arguments: weights file, threads, batch size in sentences.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel
from worker import batches, serve

PAD_ID, EOS_ID, EXTRA_LENGTH = 0, 1, 50


def make_model(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> MarianMTModel:
    """Make a post-norm Transformer with our weights."""
    table = arrays["embedding"]
    config = MarianConfig(
        vocab_size=len(table),
        d_model=table.shape[1],
        encoder_layers=sizes["layers"],
        decoder_layers=sizes["layers"],
        encoder_attention_heads=sizes["heads"],
        decoder_attention_heads=sizes["heads"],
        encoder_ffn_dim=sizes["filter"],
        decoder_ffn_dim=sizes["filter"],
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=len(arrays["positions"]),
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=PAD_ID,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    state = model.state_dict()
    for name in state:
        if name.endswith("bias") and "layer_norm" not in name:
            state[name] = torch.zeros_like(state[name])
    # Our first input is the zero vector, and PAD is never generated.
    table = table.copy()
    table[PAD_ID] = 0.0
    for name in (
        "model.shared",
        "model.encoder.embed_tokens",
        "model.decoder.embed_tokens",
        "lm_head",
    ):
        state[f"{name}.weight"] = torch.tensor(table)
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embed_positions.weight"
        state[name] = torch.tensor(arrays["positions"])
    state["final_logits_bias"][0, PAD_ID] = -1e9
    for name, array in arrays.items():
        if name.startswith("model."):
            state[name] = torch.tensor(array)
    model.load_state_dict(state)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    return model


def main(weights: str, threads: str, batch_size: str) -> None:
    """Load the weights and serve."""
    torch.set_num_threads(int(threads))
    with np.load(weights) as file:
        arrays = dict(file)
    sizes = json.loads(str(arrays.pop("sizes")))
    sources = json.loads(str(arrays.pop("sources")))
    model = make_model(arrays, sizes)

    @torch.inference_mode()
    def translate(beam_size: int) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in sources]
        for batch in batches(sources, int(batch_size)):
            longest = max(len(ids) for _, ids in batch)
            ids = torch.zeros((len(batch), longest), dtype=torch.long)
            for row, (_, source) in enumerate(batch):
                ids[row, : len(source)] = torch.tensor(source)
            output = model.generate(
                input_ids=ids,
                attention_mask=(ids != PAD_ID).long(),
                num_beams=beam_size,
                do_sample=False,
                length_penalty=0.6,
                max_new_tokens=longest + EXTRA_LENGTH,
                early_stopping=False,
            )
            for (number, _), row in zip(batch, output.tolist(), strict=True):
                found[number] = [t for t in row if t not in (PAD_ID, EOS_ID)]
        return found

    serve(translate)


if __name__ == "__main__":
    main(*sys.argv[1:])
