"""Measure what the attention of sample sentences costs during training.

Two training runs of one model alternate in one process. One captures and writes the
attention of sample sentence pairs before each block of updates, as `t2t train` does at
each evaluation; the other run has `--attention_samples 0`. The output shows
the ratio of their updates, the time and the bytes per evaluation, and the share of a
training run at the default interval of evaluations.

    python benchmarks/attention_samples.py --rounds 5
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.features.attention_view.attention_summaries import (
    IdPair,
    attention_evaluator,
)
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import MAX_STEPS_BETWEEN_EVALUATIONS
from t2t_repro.text import SymbolTokenizer
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.recovery import UpdateGuard
from t2t_repro.training.step import StepOptions, make_train_step


def updates(
    hparams: HParams,
    model: Transformer,
    args: argparse.Namespace,
    guard: UpdateGuard | None = None,
) -> Callable[[], None]:
    """Return a function that runs a block of updates on one synthetic batch."""
    shape = (args.rows, args.length)
    ids = tf.random.uniform(shape, 3, args.vocab_size, dtype=tf.int32, seed=1)
    optimizer = make_optimizer(hparams)
    optimizer.build(model.trainable_variables)
    options = StepOptions(hparams.label_smoothing, jit_compile=True)
    strategy = tf.distribute.get_strategy()
    step = make_train_step(model, optimizer, strategy, options, guard)

    def block() -> None:
        for _ in range(args.updates):
            step({"inputs": ids, "targets": ids})["loss"].numpy()

    return block


def random_pairs(args: argparse.Namespace) -> list[IdPair]:
    """Return the ids of the sample sentence pairs."""
    draw = np.random.default_rng(1)
    return [
        tuple([*draw.integers(3, args.vocab_size, args.length - 1), 1] for _ in "st")
        for _ in range(args.samples)
    ]


def alternate(
    actions: dict[str, Callable[[], object]], rounds: int
) -> dict[str, list[float]]:
    """Time actions in turn; in every second round, the first one runs last.

    Args:
        actions: The actions by name.
        rounds: Number of timed rounds. One more round, which compiles, runs first.

    Returns:
        Seconds of each round, by name.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        names = list(actions)
        if number % 2:
            names.append(names.pop(0))
        for name in names:
            start = time.perf_counter()
            actions[name]()
            times[name].append(time.perf_counter() - start)
    return {name: values[1:] for name, values in times.items()}


def report(times: dict[str, list[float]], args: argparse.Namespace) -> None:
    """Print the ratio of updates and the time of an evaluation."""
    ratios = [a / b for a, b in zip(times["sampled"], times["plain"], strict=True)]
    plain = statistics.median(times["plain"]) / args.updates
    sampled = statistics.median(times["sampled"]) / args.updates
    evaluation = statistics.median(times["evaluation"])
    interval = MAX_STEPS_BETWEEN_EVALUATIONS
    print(f"update without samples: {plain:.3f} s, with samples: {sampled:.3f} s")
    print(
        f"ratio with / without: median {statistics.median(ratios):.3f}, from "
        f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} rounds"
    )
    print(
        f"evaluation of {args.samples} pairs: {evaluation:.2f} s, as long as "
        f"{evaluation / plain:.1f} updates; of a training run with an evaluation per "
        f"{interval:,} updates: {evaluation / (interval * plain):.2%}"
    )


def main() -> None:
    """Time the variants and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hparams_set", default="transformer_base")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--rows", type=int, default=8, help="sentence pairs of a batch")
    parser.add_argument("--length", type=int, default=30, help="tokens per side")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=3, help="updates per round")
    args = parser.parse_args()

    catalogue.load()
    hparams = catalogue.hparams(args.hparams_set)
    without, model = (
        Transformer.from_hparams(hparams, args.vocab_size, args.vocab_size)
        for _ in range(2)
    )
    tokenizer = SymbolTokenizer([f"w{n}" for n in range(args.vocab_size - 3)])
    tokenizers, pairs = (tokenizer, tokenizer), random_pairs(args)
    sampler = attention_evaluator(model, tokenizers, pairs)
    plain, sampled = (updates(hparams, each, args) for each in (without, model))
    steps = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder:
        log = MetricsLog(folder)
        actions: dict[str, Callable[[], object]] = {
            "plain": plain,
            "evaluation": lambda: sampler(next(steps), log),
            "sampled": sampled,
        }
        times = alternate(actions, args.rounds)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        evaluations = 1 + len(times["evaluation"])
        written = sum(path.stat().st_size for path in files) / evaluations
    report(times, args)
    print(f"event data per evaluation: {written / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
