"""Tell errors that the user can correct from those of the program."""

from __future__ import annotations

from t2t_repro.errors import UserError


def as_user_error(error: Exception) -> UserError | None:
    """Return any error as one that the user can correct, or None if it is none.

    Args:
        error: A `UserError`, an error of a file, one that the user's package caused,
            or that of a device without enough memory.
    """
    if isinstance(error, UserError):
        return error
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return UserError(f"{error.filename}: {reason}" if error.filename else reason)
    # Of code that the user wrote, only the file and line matter.
    from t2t_repro.catalogue import located_error

    return located_error(error) or _out_of_memory(error)


def _out_of_memory(error: Exception) -> UserError | None:
    """Return the error of a device without enough memory in plain words, or None.

    TensorFlow, whose error it is, may not be imported.
    """
    if type(error).__name__ != "ResourceExhaustedError":
        return None
    return UserError(
        "out of memory: lower batch_size of `--hparams` to train or time, or of "
        f"`--decode_hparams` to translate.\nTensorFlow: {str(error).splitlines()[0]}"
    )
