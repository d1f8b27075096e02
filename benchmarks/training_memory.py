"""Measure the memory of an update on this CPU, and compare it with the estimate.

`python benchmarks/training_memory.py --hparams_set transformer_tiny --xla`

The measured number is the growth of the process's resident memory during an update
(Linux only): activations, gradients, and the buffers of the optimizer and of XLA.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.features.planning.timing import random_batch
from t2t_repro.models.estimates import training_memory
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.step import StepOptions, make_train_step


def resident_bytes(name: str) -> int:
    """Return "VmRSS", the resident memory, or "VmHWM", its highest value."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def main() -> None:
    """Measure, and print both numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hparams_set", default="transformer_tiny")
    parser.add_argument("--hparams", default="")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--bucket", type=int, default=-1, help="index of the bucket")
    parser.add_argument("--xla", action="store_true")
    args = parser.parse_args()

    # Return freed memory at once, so that only living tensors count.
    os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")
    catalogue.load()
    hparams = catalogue.hparams(args.hparams_set).parse(args.hparams)
    plan = BatchPlan.for_training(hparams)
    rows, length = plan.rows[args.bucket], plan.boundaries[args.bucket]
    vocab_sizes = (args.vocab_size, args.vocab_size)
    model = Transformer.from_hparams(hparams, *vocab_sizes)
    optimizer = make_optimizer(hparams)
    optimizer.build(model.trainable_variables)
    options = StepOptions(
        hparams.label_smoothing,
        jit_compile=args.xla,
        rdrop_weight=hparams.rdrop_weight,
    )
    step = make_train_step(model, optimizer, tf.distribute.get_strategy(), options)
    batch = random_batch(rows, length, vocab_sizes)
    for _ in range(3):
        step(batch)["loss"].numpy()
        before = resident_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # reset VmHWM
    step(batch)["loss"].numpy()
    measured = resident_bytes("VmHWM") - before
    memory = training_memory(hparams, *vocab_sizes, rows=rows, length=length)
    estimated = memory.activations + memory.gradients
    print(
        f"{args.hparams_set}, {rows} x {length} tokens, XLA {args.xla}: measured "
        f"{measured / 1e6:.0f} MB, estimated {estimated / 1e6:.0f} MB (activations "
        f"{memory.activations / 1e6:.0f}), {measured / estimated:.2f} times"
    )


if __name__ == "__main__":
    main()
