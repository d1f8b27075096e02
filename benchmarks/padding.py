"""Count the padding of an epoch and time its reading, in buckets and in packed rows.

python benchmarks/padding.py --data_dir DATA --problem text_pairs \
        --batch_size 4096 --max_length 256 --packed_lengths 128 256
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.data.prepared import PreparedData


class Epoch(NamedTuple):
    """What the batches of an epoch hold.

    Attributes:
        padding: Share of padding in the positions of both sides.
        batches: Number of batches.
        shapes: Number of their shapes.
        target_tokens: Target tokens without padding.
    """

    padding: float
    batches: int
    shapes: int
    target_tokens: int


def count(shards: Shards, plan: BatchPlan) -> Epoch:
    """Count the positions of an epoch."""
    real = positions = batches = target_tokens = 0
    shapes = set()
    for batch in training_epoch(shards, plan, seed=0, epoch=0):
        for side in ("inputs", "targets"):
            ids = batch[side].numpy()
            tokens = np.count_nonzero(ids)
            real += tokens
            positions += ids.size
        target_tokens += tokens
        shapes.add(ids.shape)
        batches += 1
    return Epoch(1 - real / positions, batches, len(shapes), target_tokens)


def reading_seconds(shards: Shards, plan: BatchPlan) -> float:
    """Return the time to read an epoch without using its batches."""
    start = time.perf_counter()
    for _ in training_epoch(shards, plan, seed=0, epoch=1):
        pass
    return time.perf_counter() - start


def main() -> None:
    """Print a table of the ways to batch."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--problem", default="text_pairs")
    parser.add_argument("--batch_size", type=int, default=4096)
    parser.add_argument("--max_length", type=int, default=256)
    parser.add_argument("--packed_lengths", type=int, nargs="*", default=[256])
    args = parser.parse_args()
    catalogue.load()
    data = PreparedData.load(args.data_dir, catalogue.problem(args.problem))
    hparams = catalogue.hparams("transformer_base").replace(
        batch_size=args.batch_size, max_length=args.max_length
    )
    plans = {
        f"buckets of {shortest} x {step}": BatchPlan.for_training(
            hparams.replace(min_length_bucket=shortest, length_bucket_step=step)
        )
        for shortest, step in [(12, 1.25), (8, 1.1)]
    }
    for length in args.packed_lengths:
        plans[f"packed rows of {length}"] = BatchPlan.for_training(
            hparams.replace(packed_length=length)
        )
    print(f"{'':24}{'padding':>9}{'batches':>9}{'shapes':>8}{'target tokens/s':>17}")
    shards = data.shards("train")
    for name, plan in plans.items():
        epoch = count(shards, plan)
        rate = epoch.target_tokens / reading_seconds(shards, plan)
        print(
            f"{name:24}{epoch.padding:9.1%}{epoch.batches:9d}{epoch.shapes:8d}"
            f"{rate:17,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
