"""Train Hugging Face's MarianMT in PyTorch, with the batches of its Trainer.

Arguments: folder of `data.py`, sizes as JSON, sentences per batch, threads, type of
the products: "float32", or "bfloat16" with `torch.autocast`.

The batches are those of `train_sampling_strategy="group_by_length"`: sentences of
similar length, a fixed number of them, each side padded to its longest. The step is
cheaper than the Trainer's: the gradient is not clipped, and PyTorch's own label
smoothing replaces the Trainer's.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LengthGroupedSampler

from benchmarks.training.worker import Counts, serve

PAD_ID, EOS_ID = 0, 1
IGNORED = -100  # cross_entropy's default


def make_model(sizes: dict[str, float]) -> MarianMTModel:
    """Make a post-norm Transformer with shared embeddings."""
    return MarianMTModel(
        MarianConfig(
            vocab_size=sizes["vocab_size"],
            d_model=sizes["width"],
            encoder_layers=sizes["layers"],
            decoder_layers=sizes["layers"],
            encoder_attention_heads=sizes["heads"],
            decoder_attention_heads=sizes["heads"],
            encoder_ffn_dim=sizes["filter"],
            decoder_ffn_dim=sizes["filter"],
            activation_function="relu",
            dropout=sizes["dropout"],
            attention_dropout=0.0,
            activation_dropout=0.0,
            scale_embedding=True,
            max_position_embeddings=sizes["longest"],
            pad_token_id=PAD_ID,
            eos_token_id=EOS_ID,
            decoder_start_token_id=PAD_ID,
            forced_eos_token_id=None,
        )
    ).train()


def read_ids(path: Path) -> list[torch.Tensor]:
    """Read the ids of every line, and append EOS."""
    lines = path.read_text(encoding="ascii").splitlines()
    return [torch.tensor([*map(int, line.split()), EOS_ID]) for line in lines]


def batches(
    sources: list[torch.Tensor], targets: list[torch.Tensor], size: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield padded batches of an epoch: sources, and targets as labels."""
    sampler = LengthGroupedSampler(size, lengths=[len(ids) for ids in sources])
    order = list(sampler)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        yield (
            pad_sequence([sources[n] for n in rows], True, PAD_ID),
            pad_sequence([targets[n] for n in rows], True, IGNORED),
        )


def train(
    model: MarianMTModel, folder: Path, size: int, smoothing: float, dtype: str
) -> Iterator[Counts]:
    """Make one update after the other."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=5e-4, betas=(0.9, 0.98), weight_decay=0.0, fused=True
    )
    sides = [read_ids(folder / f"{side}.txt") for side in ("source", "target")]
    for _ in itertools.count():
        for source, labels in batches(*sides, size):
            mask = source != PAD_ID
            # The labels make the decoder's inputs; the loss below replaces the model's.
            inputs = model.prepare_decoder_input_ids_from_labels(labels)
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
                logits = model(source, mask, inputs).logits
                loss = cross_entropy(
                    logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing
                )
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            target_tokens = int((labels != IGNORED).sum())
            lengths = (source.shape[1], labels.shape[1])
            yield (len(labels), *lengths, int(mask.sum()), target_tokens)


def main(folder: str, sizes: str, batch_size: str, threads: str, dtype: str) -> None:
    """Make the model and serve."""
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    given = json.loads(sizes)
    updates = train(
        make_model(given), Path(folder), int(batch_size), given["smoothing"], dtype
    )

    def warm_up() -> int:
        next(updates)
        return 1

    serve(warm_up, updates)


if __name__ == "__main__":
    main(*sys.argv[1:])
