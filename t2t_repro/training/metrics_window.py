"""Average the metrics of the steps between two lines of the log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import tensorflow as tf


class MetricsWindow:
    """Collect the metrics of the steps since the last summary.

    Values stay on the device until they are summarized, so that a step does not wait
    for the previous one.
    """

    def __init__(self) -> None:
        self._steps: list[dict[str, tf.Tensor]] = []
        self._start = time.monotonic()

    def add(self, results: dict[str, tf.Tensor]) -> None:
        """Add the metrics of a step, as `make_train_step` returns them."""
        self._steps.append(results)

    def pause(self, action: Callable[[], None]) -> None:
        """Call a function without counting its time."""
        start = time.monotonic()
        action()
        self._start += time.monotonic() - start

    def summarize(self) -> dict[str, float]:
        """Return means and rates, and begin a new window.

        Returns:
            "loss" and "nll" in nats, averaged over target tokens; "gradient_norm" and
            "target_tokens_per_step", averaged over steps; the last "learning_rate" and,
            if the steps have it, "branch_learning_rate"; "source_tokens_per_second",
            "target_tokens_per_second" and "steps_per_second"; and "padding_share", a
            fraction of all positions.
        """
        steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        seconds = max(time.monotonic() - self._start, 1e-9)
        totals = {k: math.fsum(s[k] for s in steps) for k in steps[0]}
        source, target = totals["source_tokens"], totals["target_tokens"]

        def mean(name: str) -> float:
            """Weight each step by its target tokens."""
            return math.fsum(s[name] * s["target_tokens"] for s in steps) / target

        self._steps, self._start = [], time.monotonic()
        return {
            "loss": mean("loss"),
            "nll": mean("nll"),
            "gradient_norm": totals["gradient_norm"] / len(steps),
            **{k: v for k, v in steps[-1].items() if k.endswith("learning_rate")},
            "source_tokens_per_second": source / seconds,
            "target_tokens_per_second": target / seconds,
            "target_tokens_per_step": target / len(steps),
            "padding_share": 1.0 - (source + target) / totals["positions"],
            "steps_per_second": len(steps) / seconds,
        }
