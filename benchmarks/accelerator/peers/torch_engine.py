"""Train or decode in PyTorch. Arguments: the job as JSON, kind, mode.

The kind is "transformer", a post-norm `torch.nn.Transformer` that only trains, or
"marian", Hugging Face's MarianMT. The mode is "eager" or "compile".
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from benchmarks.accelerator.peers.job import (
    FIRST_ID,
    PAD_ID,
    Job,
    translations,
    updates,
)
from benchmarks.training.worker import Counts, serve

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Transformer(nn.Module):
    """`nn.Transformer` with one embedding for both sides and the logits."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.scale = math.sqrt(job.width)
        self.embedding = nn.Embedding(job.vocab_size, job.width)
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        self.dropout = nn.Dropout(job.dropout)
        self.layers = nn.Transformer(
            job.width,
            job.heads,
            job.layers,
            job.layers,
            job.filter,
            job.dropout,
            batch_first=True,
        )
        self.register_buffer("positions", sinusoids(job.length, job.width))
        mask = nn.Transformer.generate_square_subsequent_mask(job.length)
        self.register_buffer("causal", mask)

    def forward(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits `[rows, length, vocab_size]`."""
        outputs = self.layers(
            self.embed(source),
            self.embed(inputs),
            tgt_mask=self.causal,
            tgt_is_causal=True,
        )
        return linear(outputs, self.embedding.weight)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return embeddings with positions, `[rows, length, width]`."""
        return self.dropout(self.embedding(ids) * self.scale + self.positions)


def sinusoids(length: int, width: int) -> torch.Tensor:
    """Return the positions of the paper, `[length, width]`."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angles = torch.arange(length)[:, None] * rates[None, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def make_marian(job: Job) -> nn.Module:
    """Make a post-norm MarianMT with shared embeddings."""
    from benchmarks.training.marian import make_model

    return make_model({**dataclasses.asdict(job), "longest": job.output_length})


def random_ids(job: Job) -> torch.Tensor:
    """Return a batch without padding, `[rows, length]`."""
    size = (job.rows, job.length)
    return torch.randint(FIRST_ID, job.vocab_size, size, device=DEVICE)


def with_products_in(precision: str) -> contextlib.AbstractContextManager[object]:
    """Choose the precision of matrix products."""
    if precision == "bfloat16":
        return torch.autocast(DEVICE, torch.bfloat16)
    high = "high" if precision == "tensorfloat32" else "highest"
    torch.set_float32_matmul_precision(high)
    return contextlib.nullcontext()


def train(
    job: Job, logits_of: Callable[..., torch.Tensor], model: nn.Module
) -> Iterator[Counts]:
    """Make updates of the weights with Adam."""
    source, labels = random_ids(job), random_ids(job)
    inputs = torch.nn.functional.pad(labels[:, :-1], (1, 0), value=PAD_ID)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    last = [torch.zeros(())]

    def update() -> None:
        with with_products_in(job.precision):
            logits = logits_of(source, inputs)
            last[0] = cross_entropy(
                logits.flatten(0, 1).float(),
                labels.flatten(),
                label_smoothing=job.smoothing,
            )
        last[0].backward()
        optimizer.step()
        optimizer.zero_grad()

    return updates(job, update, lambda: last[0].item())


def decode(job: Job, model: nn.Module) -> Iterator[Counts]:
    """Translate with beam search; every output has the same length."""
    source, length = random_ids(job), job.output_length - 1  # without the start

    def translate() -> None:
        with torch.no_grad(), with_products_in(job.precision):
            model.generate(
                source,
                attention_mask=torch.ones_like(source),
                num_beams=job.beam_size,
                min_new_tokens=length,
                max_new_tokens=length,
            ).cpu()

    return translations(job, translate)


def main(text: str, kind: str, mode: str) -> None:
    """Make the model and serve."""
    job = Job.from_json(text)
    torch.manual_seed(1)
    model = (Transformer if kind == "transformer" else make_marian)(job).to(DEVICE)

    def logits_of(source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        if kind == "transformer":
            return model(source, inputs)
        return model(input_ids=source, decoder_input_ids=inputs).logits

    if job.task == "decode":
        work = decode(job, model.eval())
    else:
        model.train()
        chosen = torch.compile(logits_of) if mode == "compile" else logits_of
        work = train(job, chosen, model)

    def warm_up() -> int:
        next(work)
        return 1

    serve(warm_up, work)


if __name__ == "__main__":
    main(*sys.argv[1:])
