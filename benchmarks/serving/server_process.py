"""A server that a benchmark starts and stops.

Its first line on standard output must be its address, as that of `t2t serve`.
"""

from __future__ import annotations

import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Self

import psutil

START = 300.0  # seconds until the address must be there
STOP = 60.0


class ServerProcess:
    """A server in its own process.

    Args:
        command: Program and arguments.
        log: File that its standard error is appended to.
        cores: Numbers of the cores that it may use, as "0" or "0,1"; all by default.

    Attributes:
        url: Its address, without a slash at the end.
        start_seconds: Seconds until it accepted requests.
    """

    def __init__(
        self, command: Sequence[str], log: Path, cores: str | None = None
    ) -> None:
        pinned = ["taskset", "-c", cores] if cores else []
        start = time.monotonic()
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [*pinned, *command], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        try:
            self.url = self._first_line(log)
        except BaseException:
            self._process.kill()
            raise
        self.start_seconds = time.monotonic() - start

    def _first_line(self, log: Path) -> str:
        out: IO[str] = self._process.stdout
        if not select.select([out], [], [], START)[0]:
            raise SystemExit(f"no address after {START:.0f} s: see {log}")
        line = out.readline().strip()
        if not line.startswith("http://"):
            raise SystemExit(f"expected an address, received {line!r}: see {log}")
        return line.rstrip("/")

    def rss_mb(self) -> float:
        """Return the memory of the process and its children in MB."""
        parent = psutil.Process(self._process.pid)
        processes = [parent, *parent.children(recursive=True)]
        return sum(process.memory_info().rss for process in processes) / 1e6

    def stop(self) -> int:
        """Stop the server, and return its exit code; -9 if it had to be killed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
