"""Import TensorFlow without the banner that no setting of TensorFlow can silence."""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from t2t_repro import catalogue

# TF_CPP_MIN_LOG_LEVEL is read only after the import has written these lines.
_BANNER = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog")


def import_tensorflow() -> None:
    """Import TensorFlow and Keras, once a command needs them.

    Drops the informational lines of the import. Warnings and errors, such as those of a
    broken GPU driver, are still shown.
    """
    with _without_banner():
        importlib.import_module("tensorflow")
        importlib.import_module("keras")


def load_catalogue(usr_dir: str | None) -> None:
    """Load the catalogues and the user's package, which may import TensorFlow."""
    if usr_dir is None:
        catalogue.load()
        return
    with _without_banner():
        catalogue.load(usr_dir)


@contextmanager
def _without_banner() -> Iterator[None]:
    """Buffer stderr, also of native code, then write all of it but the banner."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            held_back.seek(0)
            for line in held_back:
                if not _BANNER.match(line):
                    os.write(2, line)
