"""Average the metrics of the steps between two lines of the log."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable

import tensorflow as tf


class MetricsWindow:
    """Collect the metrics of the steps since the last summary.

    Values stay on the device until they are summarized or saved, so that a step does
    not wait for the previous one.

    Args:
        state: A saved state of another window, which this one continues; "" = none.
    """

    def __init__(self, state: str = "") -> None:
        values = json.loads(state) if state else {"steps": [], "seconds": 0.0}
        self._steps: list[dict[str, tf.Tensor | float]] = values["steps"]
        self._start = time.monotonic() - values["seconds"]

    def state(self) -> str:
        """Return the steps and the seconds so far as JSON, for a checkpoint."""
        self._steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        seconds = time.monotonic() - self._start
        return json.dumps({"steps": self._steps, "seconds": seconds})

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
            fraction of all positions. The means of "loss", "nll" and "gradient_norm"
            leave out skipped updates, whose number is "skipped_updates" if there are
            any; they are NaN if all were skipped.
        """
        steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        made = [s for s in steps if not s.get("skipped")]
        seconds = max(time.monotonic() - self._start, 1e-9)
        counts = ("source_tokens", "target_tokens", "positions")
        source, target, positions = (math.fsum(s[k] for s in steps) for k in counts)
        skipped = len(steps) - len(made)
        self._steps, self._start = [], time.monotonic()
        return {
            "loss": _token_mean("loss", made),
            "nll": _token_mean("nll", made),
            "gradient_norm": _ratio(math.fsum(s["gradient_norm"] for s in made), made),
            **{k: v for k, v in steps[-1].items() if k.endswith("learning_rate")},
            "source_tokens_per_second": source / seconds,
            "target_tokens_per_second": target / seconds,
            "target_tokens_per_step": target / len(steps),
            "padding_share": 1.0 - (source + target) / positions,
            "steps_per_second": len(steps) / seconds,
            **({"skipped_updates": skipped} if skipped else {}),
        }


def _token_mean(name: str, steps: list[dict[str, float]]) -> float:
    """Weight each step by its target tokens."""
    total = math.fsum(s[name] * s["target_tokens"] for s in steps)
    tokens = math.fsum(s["target_tokens"] for s in steps)
    return total / tokens if tokens else math.nan


def _ratio(total: float, steps: list[dict[str, float]]) -> float:
    return total / len(steps) if steps else math.nan
