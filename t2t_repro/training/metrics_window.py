"""Average the metrics of the steps between two lines of the log."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable

import tensorflow as tf

from t2t_repro.training.loss_scale import has_overflowed

_COUNTS = ("source_tokens", "target_tokens", "positions")
# Ends of the names of metrics whose last value counts.
_LAST = ("learning_rate", "loss_scale")


class MetricsWindow:
    """Metrics of the steps since the last summary.

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

    def add(
        self, results: dict[str, tf.Tensor], compile_seconds: float | None = None
    ) -> None:
        """Add the metrics of a step, as `make_train_step` returns them.

        Args:
            results: Metrics of the step.
            compile_seconds: Duration of the step if it was the first one of its shape,
                which includes the compilation. Rates leave such a step out.
        """
        if compile_seconds is None:
            self._steps.append(results)
            return
        self._start += compile_seconds
        self._steps.append({**results, "compile_seconds": compile_seconds})

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
            if the steps have them, "branch_learning_rate" and "loss_scale"; rates, see
            `_rates`; and "padding_share", a fraction of all positions. The means of
            "loss", "nll" and "gradient_norm" leave out skipped updates, whose number is
            "skipped_updates" if there are any; they are NaN if all were skipped. The
            mean of "gradient_norm" also leaves out "overflowed_updates", for which the
            loss scale was too high.
        """
        steps = [{k: float(v) for k, v in s.items()} for s in self._steps]
        seconds = max(time.monotonic() - self._start, 1e-9)
        self._steps, self._start = [], time.monotonic()
        made = [s for s in steps if not s.get("skipped")]
        finite = [s for s in made if not has_overflowed(s)]
        source, target, positions = (_total(name, steps) for name in _COUNTS)
        counts = {
            "skipped_updates": len(steps) - len(made),
            "overflowed_updates": len(made) - len(finite),
        }
        return {
            "loss": _token_mean("loss", made),
            "nll": _token_mean("nll", made),
            "gradient_norm": _ratio(_total("gradient_norm", finite), len(finite)),
            **{k: v for k, v in steps[-1].items() if k.endswith(_LAST)},
            **_rates(steps, seconds),
            "target_tokens_per_step": target / len(steps),
            "padding_share": 1.0 - (source + target) / positions,
            **{name: count for name, count in counts.items() if count},
        }


def _rates(steps: list[dict[str, float]], seconds: float) -> dict[str, float]:
    """Return tokens and steps per second, and the time and number of first steps.

    Args:
        steps: Metrics of the steps.
        seconds: Duration of the steps that were not the first of their shape.

    Returns:
        "source_tokens_per_second", "target_tokens_per_second" and "steps_per_second" of
        these steps, if there are any; and "compile_seconds" and "compiled_updates", the
        time and number of the others, if there are any.
    """
    timed = [s for s in steps if "compile_seconds" not in s]
    rates = {}
    if timed:
        rates = {
            "source_tokens_per_second": _total("source_tokens", timed) / seconds,
            "target_tokens_per_second": _total("target_tokens", timed) / seconds,
            "steps_per_second": len(timed) / seconds,
        }
    if len(timed) < len(steps):
        first = [s for s in steps if "compile_seconds" in s]
        rates["compile_seconds"] = _total("compile_seconds", first)
        rates["compiled_updates"] = len(first)
    return rates


def _total(name: str, steps: list[dict[str, float]]) -> float:
    return math.fsum(s[name] for s in steps)


def _token_mean(name: str, steps: list[dict[str, float]]) -> float:
    """Weight each step by its target tokens."""
    total = math.fsum(s[name] * s["target_tokens"] for s in steps)
    return _ratio(total, _total("target_tokens", steps))


def _ratio(total: float, count: float) -> float:
    return total / count if count else math.nan
