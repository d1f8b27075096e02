"""Measure training on one accelerator with Keras's JAX backend.

Times the update of a model on batches of several shapes without padding, and compares
its rate of operations with that of a large matrix product in the same precision.
Needs no TensorFlow; see docs/accelerator.md. From the root of the checkout:

    KERAS_BACKEND=jax PYTHONPATH=. python -m benchmarks.accelerator.measure \
        --model transformer_big --dtype bfloat16 --json big.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.accelerator.jax_step import (
    PRECISIONS,
    Batch,
    copy_state,
    make_update,
    require_jax,
    with_precision,
)
from benchmarks.accelerator.program import run_program
from t2t_repro import catalogue
from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.files import atomic_write
from t2t_repro.models.estimates import training_flops
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.text_tables import aligned
from t2t_repro.training.optimizer import make_optimizer

# About the paper's 25,000 target tokens per step (section 5.1), in multiples of 8
# positions, and the paper's vocabulary of 37,000.
SHAPES = "784x32,392x64,196x128,98x256"
VOCAB_SIZE = 37_000
WARM_UP = 3  # calls that are not timed
FIRST_ID = 2  # after PAD and EOS
MATMULS = 16  # products per timed call, so that starting it costs nothing
MATMUL_CALLS = 7
# Heading of the table -> name of a figure, its factor and its format.
COLUMNS = {
    "ms per step": ("step_seconds", 1e3, ",.1f"),
    "target tokens/s": ("target_tokens_per_second", 1, ",.0f"),
    "of matmul rate": ("share_of_matmul_rate", 1, ".1%"),
    "step GiB": ("step_bytes", 2**-30, ".2f"),
    "peak GiB": ("peak_bytes", 2**-30, ".2f"),
    "compile s": ("compile_seconds", 1, ".1f"),
}


def matmul_rate(size: int, dtype: str) -> float:
    """Measure the rate of square matrix products, in operations per second."""
    keys = jax.random.split(jax.random.key(1))
    # The spread keeps the values of a chain of products near 1.
    x, y = (jax.random.normal(key, (size, size), dtype=dtype) for key in keys)
    y = y * jnp.asarray(size**-0.5, dtype)

    @jax.jit
    def products(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, MATMULS, lambda _, x: jnp.matmul(x, y), x)

    seconds, _ = _median_time(lambda x: products(x, y), x, MATMUL_CALLS)
    return MATMULS * 2 * size**3 / seconds


def _median_time(call: Callable[[Any], Any], value: Any, n: int) -> tuple[float, Any]:
    """Return the median time of calls, each with the last one's value; and the last."""
    times = []
    for _ in range(WARM_UP + n):
        start = time.perf_counter()
        value = jax.block_until_ready(call(value))
        times.append(time.perf_counter() - start)
    return statistics.median(times[WARM_UP:]), value


class Benchmark:
    """A model and its training step, to be timed on batches of several shapes.

    Args:
        hparams: Hparams of the model and its training.
        vocab_size: Size of the vocabulary of both sides.
    """

    def __init__(self, hparams: HParams, vocab_size: int) -> None:
        keras.utils.set_random_seed(1)
        self.hparams, self.vocab_size = hparams, vocab_size
        model = Transformer.from_hparams(hparams, vocab_size, vocab_size)
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
        self.model, self.parameters = model, model.count_params()
        self.step = jax.jit(make_update(model, optimizer, hparams), donate_argnums=0)
        # On the host: every shape begins with its own state on the device.
        self.initial = jax.device_get(copy_state(model, optimizer))

    def measure(
        self, rows: int, length: int, steps: int, rate: float
    ) -> dict[str, Any]:
        """Compile the step for a shape, warm it up and time it.

        Args:
            rows: Number of sentence pairs.
            length: Number of tokens per side.
            steps: Number of timed steps.
            rate: Operations per second of `matmul_rate`.

        Returns:
            Times in seconds; sizes in bytes, or None if the device does not tell; and
            the last loss in nats per token. Without enough memory, the "failure".
        """
        figures: dict[str, Any] = {"rows": rows, "length": length, "steps": steps}
        try:
            batch = jax.device_put(self.batch(rows, length))
            start = time.perf_counter()
            compiled = self.step.lower(self.initial, batch).compile()
            figures["compile_seconds"] = time.perf_counter() - start
            state = jax.device_put(self.initial)
            seconds, (_, loss) = _median_time(
                lambda last: compiled(last[0], batch), (state, None), steps
            )
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return figures | {"failure": str(error).splitlines()[0][:200]}
        flops = training_flops(self.hparams, self.vocab_size, rows * length, length)
        sizes = compiled.memory_analysis()
        step_bytes = sizes.argument_size_in_bytes + sizes.output_size_in_bytes
        step_bytes += sizes.temp_size_in_bytes - sizes.alias_size_in_bytes
        memory = jax.local_devices()[0].memory_stats() or {}
        return figures | {
            "step_seconds": seconds,
            "target_tokens_per_second": rows * length / seconds,
            "flops": flops,
            "share_of_matmul_rate": flops / seconds / rate,
            "step_bytes": step_bytes,
            "peak_bytes": memory.get("peak_bytes_in_use"),
            "loss": float(loss),
        }

    def batch(self, rows: int, length: int) -> Batch:
        """Return a batch of random ids without padding, int32 `[rows, length]`."""
        random, size = np.random.default_rng(1), (rows, length)
        return {
            side: random.integers(FIRST_ID, self.vocab_size, size, dtype=np.int32)
            for side in (INPUTS, TARGETS)
        }


def table(shapes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of all shapes, followed by the shapes that failed."""
    rows, failed = [("rows x length", *COLUMNS)], []
    for shape in shapes:
        name = f"{shape['rows']}x{shape['length']}"
        if "failure" in shape:
            failed.append(f"{name} skipped: out of memory: {shape['failure']}")
        else:
            cells = ((shape[figure], *form) for figure, *form in COLUMNS.values())
            texts = ("-" if x is None else format(x * y, f) for x, y, f in cells)
            rows.append((name, *texts))
    return aligned(rows, right=range(1, len(rows[0]))) + failed


def shapes_of(text: str) -> list[list[int]]:
    """Read shapes written as `ROWSxLENGTH,ROWSxLENGTH`."""
    return [[int(size) for size in part.split("x")] for part in text.split(",")]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the program."""
    add = parser.add_argument
    add("--model", default="transformer_base", help="hparams set (%(default)s)")
    add("--hparams", default="", help="changes to the set, as name=value,name=value")
    add("--dtype", choices=PRECISIONS, default="bfloat16")
    add("--shapes", type=shapes_of, default=SHAPES, help="pairs x tokens (%(default)s)")
    add("--steps", type=int, default=20, help="timed steps per shape (%(default)s)")
    add("--vocab_size", type=int, default=VOCAB_SIZE)
    add("--matmul_size", type=int, default=8192, help="rows and columns")
    add("--json", type=Path, help="file for the figures")


def run(args: argparse.Namespace) -> None:
    """Measure every shape, and print and write the figures."""
    require_jax()
    hparams = catalogue.hparams(args.model).parse(args.hparams)
    hparams = with_precision(hparams, args.dtype)
    device, shapes = jax.local_devices()[0], []
    with jax.default_matmul_precision(PRECISIONS[args.dtype]):
        rate = matmul_rate(args.matmul_size, hparams.activation_dtype)
        benchmark = Benchmark(hparams, args.vocab_size)
        names = ("model", "hparams", "dtype", "vocab_size", "matmul_size")
        facts = {name: getattr(args, name) for name in names} | {
            "parameters": benchmark.parameters,
            "device": device.device_kind,
            "platform": device.platform,
            "jax": jax.__version__,
            "keras": keras.__version__,
            "matmul_flops_per_second": rate,
        }
        print(*(f"{name}: {value}" for name, value in facts.items()), sep="\n")
        for shape in args.shapes:
            shapes.append(benchmark.measure(*shape, args.steps, rate))
            print(table(shapes[-1:])[-1], flush=True)
            if args.json is not None:
                # After every shape, so that a run cut short leaves what it measured.
                text = json.dumps({**facts, "shapes": shapes}, indent=2)
                atomic_write(args.json, text + "\n")
    print("", *table(shapes), sep="\n")


if __name__ == "__main__":
    sys.exit(run_program(__doc__, add_flags, run))
