"""Measure the cost of dropout: Keras's layer and ours, with and without XLA.

Each variant applies six dropouts in a row to a batch of activations, forward and
backward, as a training step does. The variants alternate in one process. The output
shows medians, and ratios to the time without dropout.

    python benchmarks/dropout.py --rows 93 --length 22 --width 256
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import keras
import tensorflow as tf
from training_step import median_seconds

from t2t_repro.layers import Dropout

DROPOUTS = 6
RATE = 0.3


def stack(make: Callable[[], Callable] | None, jit_compile: bool) -> Callable:
    """Return a function that applies dropout several times, forward and backward.

    Args:
        make: Function that creates a dropout layer, or None for no dropout.
        jit_compile: Whether XLA compiles the function.

    Returns:
        Function from activations `[batch, length, width]` to their gradient.
    """
    layers = [make() for _ in range(DROPOUTS)] if make else []

    @tf.function(jit_compile=jit_compile)
    def forward_and_backward(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for layer in layers:
                y = layer(1.01 * y, training=True)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, x)

    return forward_and_backward


def main() -> None:
    """Time the variants and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=93, help="sentences")
    parser.add_argument("--length", type=int, default=22, help="tokens per sentence")
    parser.add_argument("--width", type=int, default=256, help="units per token")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()

    x = tf.random.normal((args.rows, args.length, args.width), seed=1)
    elements = args.rows * args.length * args.width * DROPOUTS
    kinds = {
        "none": None,
        "keras.layers.Dropout": lambda: keras.layers.Dropout(RATE),
        "t2t_repro Dropout": lambda: Dropout(RATE),
    }
    for jit_compile in (True, False):
        functions = {name: stack(make, jit_compile) for name, make in kinds.items()}
        actions = {
            name: lambda f=function: f(x).numpy()
            for name, function in functions.items()
        }
        seconds = median_seconds(actions, args.repeats)
        print("XLA" if jit_compile else "graph")
        for name, value in seconds.items():
            print(
                f"  {name:22} {1e9 * value / elements:6.2f} ns per element, "
                f"{value / seconds['none']:6.2f} x none"
            )


if __name__ == "__main__":
    main()
