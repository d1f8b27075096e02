"""Notice the updates that take far longer than others, because they are compiled."""

from __future__ import annotations

import time
from collections.abc import Callable

import keras
import tensorflow as tf

from t2t_repro.constants import TARGETS
from t2t_repro.data.pipeline import Batch


class FirstUpdates:
    """Record of the updates that are the first of their kind.

    XLA compiles the step for every shape of batches. Without XLA, TensorFlow traces it
    once for all shapes.

    Args:
        strategy: The strategy of the replicas.
        num_shapes: Number of shapes that global batches can have.
        jit_compile: Whether XLA compiles the step.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy, num_shapes: int, *, jit_compile: bool
    ) -> None:
        self._strategy = strategy
        self._num_shapes = num_shapes
        self._jit_compile = jit_compile
        self._seen: set[int] = set()

    def begin(self, batch: Batch) -> str | None:
        """Return a description of the next update if it is a first one, else None.

        Args:
            batch: The (distributed) batch of the update.

        Returns:
            Such as "compiling shape 3 of 6: 64 x 32 (rows x length)".
        """
        (ids, *_) = self._strategy.experimental_local_results(batch[TARGETS])
        rows, length = ids.shape
        if not self.is_first(length):
            return None
        self.add(length)
        if not self._jit_compile:
            return "tracing the training step"
        rows *= self._strategy.num_replicas_in_sync
        number = f"{len(self._seen)} of {self._num_shapes}"
        return f"compiling shape {number}: {rows} x {length} (rows x length)"

    def is_first(self, length: int) -> bool:
        """Return whether there was no update yet for batches of this length."""
        return length not in self._seen if self._jit_compile else not self._seen

    def add(self, length: int) -> None:
        """Take note of an update on a batch of this length; no two shapes share one."""
        self._seen.add(length)


def timed_update(
    step: Callable[[Batch], dict[str, tf.Tensor]],
    batch: Batch,
    iterations: keras.Variable,
) -> tuple[dict[str, tf.Tensor], float]:
    """Make an update, and return its metrics and its duration in seconds.

    Args:
        step: Makes an update.
        batch: The batch of the update.
        iterations: The optimizer's number of updates.
    """
    # Wait for the updates that a GPU is still computing: their time is not this one's.
    # TensorFlow's `sync_devices` fails if there are several workers.
    iterations.numpy()
    start = time.monotonic()
    results = step(batch)
    float(results["loss"])  # wait for it
    return results, time.monotonic() - start
