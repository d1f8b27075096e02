"""Hold the lock of a folder until the process is killed or its input is closed.

Usage: python -m tests.support.hold_lock FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from t2t_repro.files import folder_lock


def main(folder: str) -> None:
    with folder_lock(Path(folder), "lock", "training"):
        sys.stdout.write("locked\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
