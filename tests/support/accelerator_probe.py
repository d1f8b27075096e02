"""Facts about the accelerator benchmark on the JAX backend, as a JSON file."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import jax

from benchmarks.accelerator.measure import (
    Benchmark,
    Shape,
    chosen_dropout,
    compiler_flops,
    with_dropout,
)
from benchmarks.accelerator.report import table
from t2t_repro import catalogue
from t2t_repro.layers import Dropout
from t2t_repro.models.sizes import training_flops
from t2t_repro.settings.hparams import HParams

VOCAB_SIZE = 500
SHAPE = Shape(9, 8)
# Unlike numbers of layers, and a length that makes attention count.
SHAPES = (Shape(8, 16), Shape(2, 96))


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
    for shape in SHAPES:
        batch = benchmark.batch(shape)
        compiled = benchmark.step.lower(benchmark.initial, batch).compile()
        formula = training_flops(
            benchmark.hparams, VOCAB_SIZE, shape.tokens, shape.length
        )
        found.append((formula, compiler_flops(compiled)))
    return found


def failing_with(benchmark: Benchmark, message: str) -> list[str]:
    """Return the table of a shape whose step fails with an error of JAX."""

    class Failing:
        def lower(self, *_: object) -> None:
            raise jax.errors.JaxRuntimeError(message)

    step, benchmark.step = benchmark.step, Failing()
    try:
        return table([benchmark.measure(SHAPE, 2, 1e9)])
    finally:
        benchmark.step = step


def other_error(benchmark: Benchmark) -> str:
    """Return the message of an error that must pass."""
    try:
        failing_with(benchmark, "INTERNAL: a fault")
    except jax.errors.JaxRuntimeError as error:
        return str(error)
    return "no error"


def dropout_modules() -> dict[str, str]:
    """Return the module that computes dropout for each choice."""
    found = {}
    for kind in ("keras", "hash"):
        with chosen_dropout(kind):
            found[kind] = Dropout.call.__module__
    return {**found, "after": Dropout.call.__module__}


def main(path: str) -> None:
    hparams = small_hparams()
    benchmark = Benchmark(hparams, VOCAB_SIZE)
    without = with_dropout(hparams, "none")
    found = {
        "flops": flops_of(benchmark),
        "out_of_memory": failing_with(benchmark, "RESOURCE_EXHAUSTED: 5 bytes\nmore"),
        "other_error": other_error(benchmark),
        "late": table([benchmark.measure(SHAPE, 2, 1e9, time.monotonic())]),
        "rates": [
            without.layer_prepostprocess_dropout,
            without.attention_dropout,
            without.relu_dropout,
        ],
        "dropout_modules": dropout_modules(),
    }
    Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
