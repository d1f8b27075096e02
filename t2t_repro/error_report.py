"""Tell errors that the user can correct from those of the program."""

from __future__ import annotations

import errno
import os

from t2t_repro.errors import UserError

# The messages of errors of several classes: a file that cannot be mapped, a library
# that cannot be loaded, a thread without a stack.
_REFUSED = (
    os.strerror(errno.ENOMEM),
    "failed to map segment from shared object",
    "can't start new thread",
)


def as_user_error(error: Exception) -> UserError | None:
    """Return any error as one that the user can correct, or None if it is none.

    Args:
        error: A `UserError`, an error of a file, one that the user's package caused,
            or that of a machine or device without enough memory.
    """
    if isinstance(error, UserError):
        return error
    if (refused := _out_of_memory(error)) is not None:
        return refused
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return UserError(f"{error.filename}: {reason}" if error.filename else reason)
    # Of code that the user wrote, only the file and line matter.
    from t2t_repro.catalogue import located_error

    return located_error(error)


def _out_of_memory(error: Exception) -> UserError | None:
    """Return the error of a machine or device without enough memory, or None."""
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    # TensorFlow, whose error it is, may not be imported.
    if type(error).__name__ == "ResourceExhaustedError":
        return UserError(
            "out of memory: lower batch_size of `--hparams` to train or time, or of "
            f"`--decode_hparams` to translate.\nTensorFlow: {reason}"
        )
    if isinstance(error, MemoryError) or any(text in str(error) for text in _REFUSED):
        return UserError(
            "out of memory: close other programs, raise the limit of `ulimit -v` if "
            f"there is one, or lower batch_size.\nThe system: {reason}"
        )
    return None
