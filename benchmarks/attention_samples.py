"""Measure what the attention of sample sentences costs during training.

Two trainings of the same model alternate in one process. One writes the attention of
sample sentence pairs before every block of updates. The output shows the ratio of their
updates, the time and bytes per evaluation, and the size of the HTML page.

    python benchmarks/attention_samples.py --hparams_set transformer_base --rows 16
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.text import SymbolTokenizer
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.visualization.capture import capture_attention
from t2t_repro.visualization.page import html_page
from t2t_repro.visualization.samples import attention_evaluator

UPDATES_PER_BLOCK = 5


def updates(hparams: HParams, model: Transformer, args: argparse.Namespace) -> Callable:
    """Return a function that runs a block of updates on one synthetic batch."""
    shape = (args.rows, args.length)
    ids = tf.random.uniform(shape, 3, args.vocab_size, dtype=tf.int32, seed=1)
    optimizer = make_optimizer(hparams)
    optimizer.build(model.trainable_variables)
    options = StepOptions(hparams.label_smoothing, jit_compile=True)
    step = make_train_step(model, optimizer, tf.distribute.get_strategy(), options)

    def block() -> None:
        for _ in range(UPDATES_PER_BLOCK):
            step({"inputs": ids, "targets": ids})["loss"].numpy()

    return block


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    """Time the variants and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hparams_set", default="transformer_tiny")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--rows", type=int, default=64, help="sentence pairs")
    parser.add_argument("--length", type=int, default=30, help="tokens per side")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()

    catalogue.load()
    hparams = catalogue.hparams(args.hparams_set)
    models = [
        Transformer.from_hparams(hparams, args.vocab_size, args.vocab_size)
        for _ in range(2)
    ]
    tokenizer = SymbolTokenizer([f"w{n}" for n in range(args.vocab_size - 3)])
    draw = np.random.default_rng(1)
    pairs = [
        tuple([*draw.integers(3, args.vocab_size, args.length - 1), 1] for _ in "st")
        for _ in range(args.samples)
    ]
    tokenizers = (tokenizer, tokenizer)
    sampler = attention_evaluator(models[1], tokenizers, pairs)
    plain, sampled = (updates(hparams, model, args) for model in models)
    times: dict[str, list[float]] = {"plain": [], "sampled": [], "evaluation": []}
    with tempfile.TemporaryDirectory() as folder:
        log = MetricsLog(folder)
        for step in range(args.repeats + 1):
            times["evaluation"].append(seconds(partial(sampler, step, log)))
            times["sampled"].append(seconds(sampled))
            times["plain"].append(seconds(plain))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        written = sum(path.stat().st_size for path in files)
    median = {name: statistics.median(values[1:]) for name, values in times.items()}
    attention = capture_attention(models[1], tokenizers, *pairs[0])
    page = html_page([attention.to_document()], "page").encode()
    print(f"update with / without samples: {median['sampled'] / median['plain']:.3f}")
    update = median["plain"] / UPDATES_PER_BLOCK
    print(f"evaluation of {args.samples} pairs: {median['evaluation']:.2f} s, ", end="")
    print(f"as long as {median['evaluation'] / update:.1f} updates of {update:.2f} s")
    print(f"event data per evaluation: {written / (args.repeats + 1) / 1e6:.2f} MB")
    print(f"page of one pair: {len(page) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
