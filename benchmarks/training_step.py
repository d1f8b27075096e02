"""Measure the speed of an update, compiled by XLA as a whole, in part, or not at all.

The limit is the rate of one large `tf.matmul` on the same device, for the step's matrix
multiplications (forward once, backward twice). The variants alternate in one process.
The output shows medians, ratios, and the share of the matmul rate of each dtype.

    python benchmarks/training_step.py --hparams_set transformer_tiny \
        --vocab_size 8000 --rows 151 --length 27
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Mapping

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import Batch
from t2t_repro.machine import keep_freed_memory
from t2t_repro.models.estimates import training_flops
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.step import StepOptions, make_train_step

MATMUL_SIZE = 2048
TRAIN_STEPS = 100_000  # for schedules that end at zero
COMPILATIONS = {
    "xla": {"jit_compile": True},
    "fusible": {"jit_compile": True, "jit_products": False},
    "graph": {},
}


def median_seconds(actions: dict[str, Callable[[], object]], repeats: int) -> dict:
    """Time actions in turn.

    Args:
        actions: The actions by name.
        repeats: Number of timed rounds. One more round, which compiles, runs first.

    Returns:
        Median time of each action in seconds, by name.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats + 1):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    """Time the variants and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hparams_set", default="transformer_tiny")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--rows", type=int, default=124, help="sentence pairs")
    parser.add_argument("--length", type=int, default=33, help="tokens per side")
    parser.add_argument("--dtypes", nargs="+", default=["float32"])
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()

    catalogue.load()
    keep_freed_memory()
    hparams = catalogue.hparams(args.hparams_set)
    ids = tf.random.uniform(
        (args.rows, args.length), 3, args.vocab_size, dtype=tf.int32, seed=1
    )
    batch = {"inputs": ids, "targets": ids}
    matmuls = {f"matmul {dtype}": matmul(dtype) for dtype in args.dtypes}
    updates = {
        f"{name} {dtype}": update(hparams, args.vocab_size, dtype, options, batch)
        for dtype, (name, options) in itertools.product(
            args.dtypes, COMPILATIONS.items()
        )
    }
    seconds = median_seconds(matmuls | updates, args.repeats)
    tokens = args.rows * args.length
    flops = training_flops(hparams, args.vocab_size, tokens, args.length)
    print(f"{args.hparams_set}, {args.rows} x {args.length} tokens per side")
    rates = {name: 2 * MATMUL_SIZE**3 / seconds[name] for name in matmuls}
    for name, rate in rates.items():
        print(f"{name} {MATMUL_SIZE}^3: {rate / 1e9:.0f} GFLOP/s")
    slowest = max(seconds[name] for name in updates)
    for name in updates:
        rate = rates[f"matmul {name.split()[1]}"]
        print(
            f"{name:16} {tokens / seconds[name]:9.0f} target tokens/s, "
            f"{flops / seconds[name] / rate:.0%} of the matmul rate, "
            f"{slowest / seconds[name]:.2f} x the slowest"
        )


def matmul(dtype: str) -> Callable[[], object]:
    """Return a function that multiplies two large matrices."""
    square = tf.cast(tf.random.normal((MATMUL_SIZE, MATMUL_SIZE), seed=1), dtype)
    product = tf.function(lambda: tf.reduce_sum(tf.matmul(square, square)))
    return lambda: product().numpy()


def update(
    hparams: HParams,
    vocab_size: int,
    dtype: str,
    compilation: Mapping[str, bool],
    batch: Batch,
) -> Callable[[], object]:
    """Make a model, and return a function that updates it."""
    hparams = hparams.replace(activation_dtype=dtype)
    model = Transformer.from_hparams(hparams, vocab_size, vocab_size)
    optimizer = make_optimizer(hparams, TRAIN_STEPS)
    optimizer.build(model.trainable_variables)
    options = StepOptions(hparams.label_smoothing, **compilation)
    step = make_train_step(model, optimizer, tf.distribute.get_strategy(), options)
    return lambda: step(batch)["loss"].numpy()


if __name__ == "__main__":
    main()
