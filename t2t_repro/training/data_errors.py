"""Report prepared data that can no longer be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import tensorflow as tf

from t2t_repro.data.pipeline import Batch
from t2t_repro.errors import UserError

# A record with a wrong checksum or a file that is cut short; a file that has vanished
# or may not be read.
_READ_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
)
# TensorFlow adds them to the reason.
_NAMES_OF_OPERATIONS = re.compile(r"\[\[.*?\]\]|\{\{.*?\}\}|\[Op:.*", flags=re.DOTALL)


def readable(batches: Iterable[Batch], completed: Callable[[], int]) -> Iterator[Batch]:
    """Yield batches, and report shards that cannot be read.

    Args:
        batches: Batches of prepared data.
        completed: Returns the number of completed updates, for the message.

    Raises:
        UserError: If a shard is damaged or has vanished.
    """
    try:
        # An error of the code that takes the batches is not raised here.
        yield from batches
    except _READ_ERRORS as error:
        reason = _NAMES_OF_OPERATIONS.sub("", error.message).strip()
        raise UserError(
            f"cannot read the prepared data after step {completed()}: {reason}.\n"
            "Restore the files from a copy, or prepare the same data again; then the "
            "same command resumes the run."
        ) from error
