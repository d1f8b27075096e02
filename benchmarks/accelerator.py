"""Measure training on one accelerator with Keras's JAX backend.

Times the update of a model on batches of several shapes without padding, and compares
its rate of operations with that of a large matrix product in the same precision.
Needs no TensorFlow; see docs/accelerator.md. From the root of the checkout:

    KERAS_BACKEND=jax PYTHONPATH=. python benchmarks/accelerator.py \
        --model transformer_big --dtype bfloat16 --json big.json
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

import jax
import keras

from benchmarks.accelerator.jax_step import require_jax
from benchmarks.accelerator.measure import (
    DROPOUTS,
    PRECISIONS,
    Benchmark,
    Measurement,
    Shape,
    chosen_dropout,
    matmul_rate,
    with_dropout,
)
from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.report import as_json, comparison, table
from t2t_repro import catalogue
from t2t_repro.files import atomic_write

# About the paper's 25,000 target tokens per step (section 5.1), in multiples of 8
# positions, and the paper's vocabulary of 37,000.
SHAPES = "784x32,392x64,196x128,98x256"
VOCAB_SIZE = 37_000


def shapes_of(text: str) -> list[Shape]:
    """Read shapes written as `ROWSxLENGTH,ROWSxLENGTH`."""
    shapes = []
    for part in text.split(","):
        match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", part.strip())
        if match is None:
            raise argparse.ArgumentTypeError(
                f"received {part!r}, expected rows x length such as 392x64"
            )
        shapes.append(Shape(int(match[1]), int(match[2])))
    return shapes


def at_least_one(text: str) -> int:
    """Read a positive integer."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"received {number}, expected at least 1")
    return number


def parse_flags() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", default="transformer_base", help="hparams set (default: %(default)s)"
    )
    parser.add_argument(
        "--hparams", default="", help="changes to the set, as name=value,name=value"
    )
    parser.add_argument("--dtype", choices=PRECISIONS, default="bfloat16")
    parser.add_argument(
        "--dropout", choices=DROPOUTS, default="hash", help="hash = t2t_repro's own"
    )
    parser.add_argument(
        "--shapes",
        type=shapes_of,
        default=SHAPES,
        help="sentence pairs x tokens per side (default: %(default)s)",
    )
    parser.add_argument(
        "--steps", type=at_least_one, default=20, help="timed steps (%(default)s)"
    )
    parser.add_argument("--vocab_size", type=at_least_one, default=VOCAB_SIZE)
    parser.add_argument(
        "--matmul_size", type=at_least_one, default=8192, help="rows and columns"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=540.0,
        help="begin no step later than this (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


def run(args: argparse.Namespace) -> None:
    """Measure every shape, and print and write the figures."""
    deadline = time.monotonic() + args.seconds
    require_jax()
    dtype, precision = PRECISIONS[args.dtype]
    hparams = catalogue.hparams(args.model).parse(args.hparams)
    hparams = with_dropout(hparams.replace(activation_dtype=dtype), args.dropout)
    with jax.default_matmul_precision(precision), chosen_dropout(args.dropout):
        rate = matmul_rate(args.matmul_size, dtype)
        benchmark = Benchmark(hparams, args.vocab_size)
        facts = facts_of(args, rate, benchmark.parameters)
        print(
            f"{args.model}, {benchmark.parameters:,} parameters, {args.dtype}, dropout "
            f"{args.dropout}, on {facts['device']} ({facts['platform']})\n"
            f"matmul {args.matmul_size}^3: {rate / 1e12:.2f} TFLOP/s",
            flush=True,
        )
        results: list[Measurement] = []
        for shape in args.shapes:
            result = benchmark.measure(shape, args.steps, rate, deadline)
            results.append(result)
            print(*table([result])[-1:], sep="\n", flush=True)
            if args.json is not None:
                # After every shape, so that a run cut short leaves what it measured.
                atomic_write(args.json, as_json(facts, results))
    print("", *table(results), *comparison(args.model, results), sep="\n")


def facts_of(args: argparse.Namespace, rate: float, parameters: int) -> dict[str, Any]:
    """Return the values that hold for all shapes."""
    device = jax.local_devices()[0]
    return {
        "model": args.model,
        "hparams": args.hparams,
        "parameters": parameters,
        "vocab_size": args.vocab_size,
        "dtype": args.dtype,
        "dropout": args.dropout,
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "keras": keras.__version__,
        "matmul_size": args.matmul_size,
        "matmul_flops_per_second": rate,
    }


def main() -> int:
    """Run the benchmark; return 0, or 1 after an error of the user."""
    args = parse_flags()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
