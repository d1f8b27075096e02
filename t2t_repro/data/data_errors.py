"""Report prepared data that can no longer be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import tensorflow as tf

from t2t_repro.errors import UserError

Item = TypeVar("Item")

# A record with a wrong checksum or a file that is cut short; a file that has vanished
# or may not be read.
_READ_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
)
# TensorFlow adds them to the reason.
_NAMES_OF_OPERATIONS = re.compile(r"\[\[.*?\]\]|\{\{.*?\}\}|\[Op:.*", flags=re.DOTALL)


def readable(
    items: Iterable[Item], completed: Callable[[], int] | None = None
) -> Iterator[Item]:
    """Yield what is read from shards, and report shards that cannot be read.

    Args:
        items: Pairs or batches of prepared data.
        completed: During training, returns the number of completed updates, for the
            message.

    Raises:
        UserError: If a shard is damaged or has vanished.
    """
    try:
        # An error of the code that takes the items is not raised here.
        yield from items
    except _READ_ERRORS as error:
        reason = _NAMES_OF_OPERATIONS.sub("", error.message).strip()
        when = "" if completed is None else f" after step {completed()}"
        raise UserError(
            f"cannot read the prepared data{when}: {reason}.\nRestore the files from a "
            "copy, or prepare the same data again; then repeat the command. Training "
            "resumes where it was."
        ) from error
