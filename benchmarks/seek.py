"""Measure how long a resumed run takes to find its place in the data.

    python benchmarks/seek.py --pairs 1000000 --step 100000

Writes shards of random pairs of Multi30k's to WMT's lengths, and times the first batch
at the start, middle and late part of an epoch, and at a given step of a run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.data.records import example_bytes

SHARDS, DISTINCT, LONGEST = 10, 5000, 250
# 4,096 tokens, lengths up to 256, buckets from 8 with the ratio 1.1
PLAN = BatchPlan.for_training(catalogue.hparams("transformer_base_v3"))


def main() -> None:
    """Write the pairs, and print the seconds to each place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--step", type=int, default=100_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(Path(folder), args.pairs)
        batches = batches_per_epoch(shards, args.pairs)
        print(f"about {batches} batches in an epoch of {args.pairs} pairs")
        # The number is an estimate, so "late" keeps away from the end.
        places = {"start": 0, f"step {args.step}": args.step % batches}
        places |= {"middle": batches // 2, "late": batches * 19 // 20}
        for name, skipped in places.items():
            start, cpu = time.monotonic(), time.process_time()
            epoch = training_epoch(shards, PLAN, seed=1, epoch=3, skip_batches=skipped)
            found = next(iter(epoch), None)
            seconds, cpu = time.monotonic() - start, time.process_time() - cpu
            ends = " (after the end)" if found is None else ""
            print(
                f"{name}: {skipped} batches{ends}, {seconds:.1f} s, {cpu:.1f} s of CPU"
            )


def write_shards(folder: Path, pairs: int) -> Shards:
    """Write the same few thousand pairs many times."""
    generator = np.random.default_rng(1)
    records = []
    for _ in range(DISTINCT):
        source = int(np.clip(generator.lognormal(3.2, 0.5), 2, LONGEST))
        target = int(np.clip(source * generator.uniform(0.8, 1.25), 2, LONGEST))
        sides = (generator.integers(2, 32000, n).tolist() for n in (source, target))
        records.append(example_bytes(*sides))
    paths = [str(folder / f"shard-{number}") for number in range(SHARDS)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            for number in range(pairs // SHARDS):
                writer.write(records[number % DISTINCT])
    return Shards(tuple(paths))


def batches_per_epoch(shards: Shards, pairs: int) -> int:
    """Count the batches of the first pairs, as many as are distinct."""
    few = Shards(shards.paths[:1])
    epoch = training_epoch(few, PLAN, seed=1, epoch=0)
    return sum(1 for _ in epoch) * pairs // (pairs // SHARDS)


if __name__ == "__main__":
    main()
