"""Facts about the accelerator benchmark on the JAX backend, as a JSON file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax

from benchmarks.accelerator.measure import Benchmark, table
from t2t_repro import catalogue
from t2t_repro.models.sizes import training_flops
from t2t_repro.settings.hparams import HParams

VOCAB_SIZE = 500
# Unlike numbers of layers, and a length that makes attention count.
SHAPES = ((8, 16), (2, 96))


def small_hparams() -> HParams:
    """Return hparams of a model whose matrix products outweigh everything else."""
    return catalogue.hparams("transformer_base").replace(
        hidden_size=128,
        filter_size=512,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=2,
    )


def flops_of(benchmark: Benchmark) -> list[tuple[float, float]]:
    """Return the operations by formula and by XLA for two shapes."""
    found = []
    for rows, length in SHAPES:
        batch = benchmark.batch(rows, length)
        compiled = benchmark.step.lower(benchmark.initial, batch).compile()
        formula = training_flops(benchmark.hparams, VOCAB_SIZE, rows * length, length)
        found.append((formula, compiled.cost_analysis()["flops"]))
    return found


def failing_with(benchmark: Benchmark, message: str) -> str:
    """Return the last line of the table if the step fails with an error of JAX."""

    class Failing:
        def lower(self, *_: object) -> None:
            raise jax.errors.JaxRuntimeError(message)

    step, benchmark.step = benchmark.step, Failing()
    try:
        return table([benchmark.measure(9, 8, 2, 1e9)])[-1]
    finally:
        benchmark.step = step


def other_error(benchmark: Benchmark) -> str:
    """Return the message of an error that must pass."""
    try:
        failing_with(benchmark, "INTERNAL: a fault")
    except jax.errors.JaxRuntimeError as error:
        return str(error)
    return "no error"


def main(path: str) -> None:
    benchmark = Benchmark(small_hparams(), VOCAB_SIZE)
    found = {
        "flops": flops_of(benchmark),
        "out_of_memory": failing_with(benchmark, "RESOURCE_EXHAUSTED: 5 bytes\nmore"),
        "other_error": other_error(benchmark),
    }
    Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
