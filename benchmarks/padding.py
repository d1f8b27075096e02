"""Count the padding of an epoch, in buckets and in packed rows.

python benchmarks/padding.py --data_dir DATA --problem text_pairs \
        --batch_size 4096 --max_length 256 --packed_lengths 128 256
"""

from __future__ import annotations

import argparse

import numpy as np

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards, training_epoch
from t2t_repro.data.prepared import PreparedData


def padding(shards: Shards, plan: BatchPlan) -> tuple[float, int, int]:
    """Return the share of padding, the number of batches and that of shapes."""
    real = positions = batches = 0
    shapes = set()
    for batch in training_epoch(shards, plan, seed=0, epoch=0):
        for side in ("inputs", "targets"):
            ids = batch[side].numpy()
            real += np.count_nonzero(ids)
            positions += ids.size
        shapes.add(batch["inputs"].shape.as_list()[0] * 1000 + ids.shape[1])
        batches += 1
    return 1 - real / positions, batches, len(shapes)


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
    sizes = {"batch_size": args.batch_size, "max_length": args.max_length}
    plans = {
        f"buckets of {shortest} x {step}": BatchPlan.from_token_budget(
            **sizes, min_length_bucket=shortest, length_bucket_step=step
        )
        for shortest, step in [(12, 1.25), (8, 1.1)]
    }
    for length in args.packed_lengths:
        plans[f"packed rows of {length}"] = BatchPlan.packed(
            **sizes, packed_length=length
        )
    print(f"{'':24}{'padding':>9}{'batches':>9}{'shapes':>8}")
    for name, plan in plans.items():
        share, batches, shapes = padding(data.shards("train"), plan)
        print(f"{name:24}{share:9.1%}{batches:9d}{shapes:8d}", flush=True)


if __name__ == "__main__":
    main()
