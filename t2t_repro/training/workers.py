"""Let the processes of a training run on several machines act together.

TensorFlow calls them workers, and one of them the chief. All of them compute the same
updates; only the chief writes files that remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training.cluster import number_of_workers

# With several workers, a signal stops training at the next multiple of this step, or at
# the last step. The workers receive signals during different updates, and agreeing
# takes time.
STEPS_BETWEEN_AGREEMENTS = 10


class LostWorkerError(UserError):
    """Another worker has stopped, so this one cannot go on."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: start the same command again


class Workers:
    """The workers of a strategy; a strategy of one process has one, the chief.

    Args:
        strategy: The strategy of the replicas.

    Attributes:
        count: Number of workers.
        number: Number of this worker, from 0; the chief is 0.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._strategy = strategy
        self.count, self.number = 1, 0
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            resolver = strategy.cluster_resolver
            self.count = number_of_workers(resolver)
            if resolver.task_type == "worker":
                chiefs = resolver.cluster_spec().as_dict().get("chief", [])
                self.number = resolver.task_id + len(chiefs)
        self._sum = tf.function(
            self._sum_over_replicas, input_signature=[tf.TensorSpec([], tf.int64)]
        )

    @property
    def is_chief(self) -> bool:
        """Whether this worker writes checkpoints and metrics."""
        return self.number == 0

    @property
    def replicas_here(self) -> int:
        """Number of replicas of this worker."""
        return self._strategy.num_replicas_in_sync // self.count

    @property
    def first_replica(self) -> int:
        """Number of this worker's first replica among all replicas."""
        return self.number * self.replicas_here

    def total(self, value: int) -> int:
        """Add up a number of every worker; all wait until each has called this."""
        if self.count == 1:
            return value
        number = tf.constant(value, tf.int64)
        return int(self._sum(number).numpy()) // self.replicas_here

    def wait_for_all(self) -> None:
        """Wait until every worker has called this."""
        self.total(0)

    @property
    def when_stopping(self) -> str:
        """When a signal stops training, for messages."""
        if self.count == 1:
            return "at the end of this step"
        return f"at the next multiple of {STEPS_BETWEEN_AGREEMENTS} steps"

    def agree_to_stop(self, step: int, stopping: bool, *, is_last: bool) -> bool:
        """Return whether any worker received a signal to stop, the same on all.

        Args:
            step: Number of completed updates.
            stopping: Whether this worker received one.
            is_last: Whether this is the last step of the training run.
        """
        if self.count == 1:
            return stopping
        if step % STEPS_BETWEEN_AGREEMENTS and not is_last:
            return False
        return self.total(int(stopping)) > 0

    @contextmanager
    def chief_first(self) -> Iterator[None]:
        """Let the chief run the block first, and the other workers afterwards.

        If the chief raises an error, the others do not wait forever: they run the
        block, too, and usually meet the same error.
        """
        if not self.is_chief:
            self.wait_for_all()
        try:
            yield
        finally:
            if self.is_chief:
                self.wait_for_all()

    def check_same_step(self, step: int) -> None:
        """Refuse to train if the workers resume from different steps.

        Raises:
            UserError: If the steps differ, so the workers see different files.
        """
        if self.total(step) != step * self.count:
            raise UserError(
                f"worker {self.number} resumes from step {step}, other workers from "
                "another one: output_dir must be one folder that all of them can read."
            )

    def _sum_over_replicas(self, value: tf.Tensor) -> tf.Tensor:
        def add(value: tf.Tensor) -> tf.Tensor:
            replicas = tf.distribute.get_replica_context()
            # The copy is on the replica's device, which the sum needs to know.
            copy = tf.identity(value)
            return replicas.all_reduce(tf.distribute.ReduceOp.SUM, copy)

        sums = self._strategy.run(add, args=(value,))
        return self._strategy.experimental_local_results(sums)[0]


@contextmanager
def errors_of_other_workers(workers: Workers) -> Iterator[None]:
    """Explain the error of a block that waits for a worker that has stopped.

    Raises:
        LostWorkerError: If another worker has stopped or cannot be reached.
    """
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        if workers.count == 1:
            raise
        raise LostWorkerError(
            f"worker {workers.number} of {workers.count} cannot reach another worker, "
            "which has stopped.\nStart all workers again: they resume from the last "
            "checkpoint."
        ) from error
