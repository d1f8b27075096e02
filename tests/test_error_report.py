from __future__ import annotations

import errno
import os

import pytest

from t2t_repro.error_report import as_user_error
from t2t_repro.errors import UsageError


class ResourceExhaustedError(Exception):
    """Has the name of TensorFlow's error."""


def test_an_error_that_the_user_can_correct_stays_as_it_is():
    error = UsageError("wrong")
    assert as_user_error(error) is error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 3.0 GiB for an array"),
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("libx.so: failed to map segment from shared object"),
        ImportError(f"libx.so: cannot open it: {os.strerror(errno.ENOMEM)}"),
        RuntimeError("can't start new thread"),
    ],
)
def test_errors_of_a_machine_without_memory_say_so(error):
    message = str(as_user_error(error))
    assert message.startswith("out of memory: close other programs")
    assert message.endswith(f"The system: {str(error) or 'MemoryError'}")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file", "a.txt"), "a.txt: No such file"),
        (OSError("gone"), "gone"),
        (
            ResourceExhaustedError("OOM in b\nmore"),
            "out of memory: lower batch_size of `--hparams` to train or time, or of "
            "`--decode_hparams` to translate.\nTensorFlow: OOM in b",
        ),
    ],
)
def test_errors_of_files_and_devices_get_a_message(error, message):
    assert str(as_user_error(error)) == message


def test_other_errors_are_those_of_the_program():
    assert as_user_error(ValueError("a bug")) is None
