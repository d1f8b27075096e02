"""Measure what the guard against bad updates costs.

Two training runs of the same model alternate in one process, one with the guard and one
without. The output shows the ratio of the times of their updates.

    python -m benchmarks.update_guard --hparams_set transformer_tiny
"""

from __future__ import annotations

import argparse
import statistics

from benchmarks.attention_samples import alternate, updates
from t2t_repro import catalogue
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.recovery import UpdateGuard


def main() -> None:
    """Time both training runs and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hparams_set", default="transformer_base")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--rows", type=int, default=8, help="sentence pairs of a batch")
    parser.add_argument("--length", type=int, default=30, help="tokens per side")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=3, help="updates per round")
    args = parser.parse_args()
    catalogue.load()
    hparams = catalogue.hparams(args.hparams_set)
    guards = {"without": None, "with": UpdateGuard(spike_factor=10.0)}
    actions = {}
    for name, guard in guards.items():
        model = Transformer.from_hparams(hparams, args.vocab_size, args.vocab_size)
        actions[name] = updates(hparams, model, args, guard)
    times = alternate(actions, args.rounds)
    ratios = [a / b for a, b in zip(times["with"], times["without"], strict=True)]
    for name, seconds in times.items():
        median = statistics.median(seconds) / args.updates
        print(f"update {name} the guard: {median:.4f} s")
    print(
        f"ratio with / without: median {statistics.median(ratios):.3f}, from "
        f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} rounds"
    )


if __name__ == "__main__":
    main()
