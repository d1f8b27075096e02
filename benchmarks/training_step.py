"""Measure the speed of one update, with and without XLA.

The limit is the rate of one large `tf.matmul` on the same device, for the step's matrix
multiplications (forward once, backward twice). The variants alternate in one process.
The output shows medians, ratios, and the share of the matmul rate.

    python benchmarks/training_step.py --hparams_set transformer_tiny \
        --vocab_size 8000 --rows 151 --length 27
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.models.sizes import training_flops
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.step import StepOptions, make_train_step

MATMUL_SIZE = 2048


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
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()

    catalogue.load()
    hparams = catalogue.hparams(args.hparams_set)
    model = Transformer.from_hparams(hparams, args.vocab_size, args.vocab_size)
    ids = tf.random.uniform(
        (args.rows, args.length), 3, args.vocab_size, dtype=tf.int32, seed=1
    )
    batch = {"inputs": ids, "targets": ids}
    strategy = tf.distribute.get_strategy()

    def update(jit_compile: bool) -> Callable[[], object]:
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
        options = StepOptions(hparams.label_smoothing, jit_compile=jit_compile)
        step = make_train_step(model, optimizer, strategy, options)
        return lambda: step(batch)["loss"].numpy()

    square = tf.random.normal((MATMUL_SIZE, MATMUL_SIZE), seed=1)
    matmul = tf.function(lambda: tf.reduce_sum(tf.matmul(square, square)))
    seconds = median_seconds(
        {
            "matmul": lambda: matmul().numpy(),
            "xla": update(True),
            "graph": update(False),
        },
        args.repeats,
    )
    rate = 2 * MATMUL_SIZE**3 / seconds["matmul"]
    tokens = args.rows * args.length
    flops = training_flops(hparams, args.vocab_size, tokens, args.length)
    print(f"{args.hparams_set}, {args.rows} x {args.length} tokens per side")
    print(f"matmul {MATMUL_SIZE}^3: {rate / 1e9:.0f} GFLOP/s")
    for name in ("xla", "graph"):
        print(
            f"{name:6} {tokens / seconds[name]:9.0f} target tokens/s, "
            f"{flops / seconds[name] / rate:.0%} of the matmul rate, "
            f"{seconds['graph'] / seconds[name]:.2f} x graph"
        )


if __name__ == "__main__":
    main()
