"""Make torch_layers.npz: PyTorch's own Transformer layers on random numbers.

Run with PyTorch (made with torch 2.13.0 and numpy 2.4.6, on a CPU)::

    python tests/golden/make_torch_layers.py

Arrays are named `<case>/<content>`: weights as PyTorch stores them (a linear layer is
`[out, in]`), inputs, lengths and the output. Padding is masked by
`key_padding_mask`, the future by `attn_mask`. Attention biases are zero, because the
paper's projections have none, and are left out of the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

HIDDEN_SIZE, FILTER_SIZE, NUM_HEADS = 8, 12, 2
EPSILON = 1e-6
SOURCE_LENGTHS, TARGET_LENGTHS = [5, 3], [4, 4]


def randomize(module: nn.Module) -> None:
    """Give every parameter its own random values, and no bias to attention."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            nn.init.normal_(parameter, std=0.4)
            if "norm" in name and name.endswith("weight"):
                parameter += 1.0
            if "in_proj_bias" in name or "out_proj.bias" in name:
                parameter.zero_()


def padding(lengths: list[int]) -> torch.Tensor:
    """Return PyTorch's mask of padding, bool `[batch, length]`."""
    return torch.arange(max(lengths))[None, :] >= torch.tensor(lengths)[:, None]


def sequence(lengths: list[int]) -> torch.Tensor:
    return torch.randn(len(lengths), max(lengths), HIDDEN_SIZE)


def layer(kind: type[nn.Module], norm: str) -> nn.Module:
    return kind(
        HIDDEN_SIZE,
        NUM_HEADS,
        FILTER_SIZE,
        dropout=0.0,
        activation="relu",
        layer_norm_eps=EPSILON,
        batch_first=True,
        norm_first=norm == "pre",
    )


def attention_case() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    block = nn.MultiHeadAttention(HIDDEN_SIZE, NUM_HEADS, bias=False, batch_first=True)
    randomize(block)
    query, memory = sequence(TARGET_LENGTHS), sequence(SOURCE_LENGTHS)
    output, weights = block(
        query,
        memory,
        memory,
        key_padding_mask=padding(SOURCE_LENGTHS),
        average_attn_weights=False,
    )
    return block, {
        "query": query,
        "memory": memory,
        "output": output,
        "attention_weights": weights,
    }


def layers_of(kind: type[nn.Module]) -> dict[str, nn.Module]:
    """Make a post-norm and a pre-norm layer with the same weights."""
    layers = {norm: layer(kind, norm) for norm in ("post", "pre")}
    randomize(layers["post"])
    layers["pre"].load_state_dict(layers["post"].state_dict())
    return layers


def encoder_case() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    layers = layers_of(nn.TransformerEncoderLayer)
    x = sequence(SOURCE_LENGTHS)
    outputs = {
        f"output_{norm}": encoder(x, src_key_padding_mask=padding(SOURCE_LENGTHS))
        for norm, encoder in layers.items()
    }
    return layers["post"], {"x": x, **outputs}


def decoder_case() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    layers = layers_of(nn.TransformerDecoderLayer)
    x, memory = sequence(TARGET_LENGTHS), sequence(SOURCE_LENGTHS)
    length = max(TARGET_LENGTHS)
    future = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
    outputs = {
        f"output_{norm}": decoder(
            x, memory, tgt_mask=future, memory_key_padding_mask=padding(SOURCE_LENGTHS)
        )
        for norm, decoder in layers.items()
    }
    return layers["post"], {"x": x, "memory": memory, **outputs}


def main() -> None:
    torch.manual_seed(0)
    cases = {
        "attention": attention_case(),
        "encoder_layer": encoder_case(),
        "decoder_layer": decoder_case(),
    }
    arrays = {"source_lengths": SOURCE_LENGTHS}
    for case, (module, tensors) in cases.items():
        for name, tensor in {**dict(module.named_parameters()), **tensors}.items():
            if tensor.any():
                arrays[f"{case}/{name}"] = tensor.detach().numpy()
    path = Path(__file__).with_name("torch_layers.npz")
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
