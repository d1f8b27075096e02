"""Train a member of an ensemble in a separate process.

This module imports no TensorFlow, so a process has its cores before TensorFlow makes
its threads.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import logging.handlers
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro import catalogue
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.user_packages import as_user_error

if TYPE_CHECKING:
    from t2t_repro.runs.run_training import TrainResult


@dataclasses.dataclass(frozen=True)
class Failure:
    """Failure of a member; unlike some errors, it can be pickled.

    Attributes:
        message: The message of the error.
        exit_code: Exit code of a command that ends with the error.
    """

    message: str
    exit_code: int


class MemberProcess:
    """A process that trains one run.

    It starts a new session, so Ctrl-C on a terminal reaches only the main process,
    which decides whether to stop this one.

    Args:
        name: Prefix of its log lines.
        settings: Settings of the run.
        problem: Name of the problem.
        data_dir: Folder of the prepared data.
        cores: Cores that the process may use; all of the main process's if empty.
        prepare: Function that the process calls first, or None.

    Attributes:
        connection: Receives the log records of the process and, at the end, a
            `TrainResult` or a `Failure`.
    """

    def __init__(
        self,
        name: str,
        settings: TrainSettings,
        problem: str,
        data_dir: Path,
        cores: Collection[int],
        prepare: Callable[[], None] | None = None,
    ) -> None:
        # A forked process would inherit TensorFlow's locks without its threads.
        context = multiprocessing.get_context("spawn")
        self.connection, sender = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_train_member,
            args=(name, settings, problem, data_dir, cores, prepare, sender),
        )
        # The process inherits the mask, so it ignores Ctrl-C even before it starts the
        # new session.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Otherwise the connection would stay open when the process ends.
        sender.close()

    def stop(self) -> None:
        """Ask the process to save and end."""
        self._process.terminate()

    def exit_code(self) -> int:
        """Wait for the end, and return the exit code; negative after a signal."""
        self._process.join()
        return self._process.exitcode or 0


class _SendLines(logging.handlers.QueueHandler):
    """Handler that sends formatted records through a connection."""

    queue: Any  # a connection, though its type asks for a queue

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record, which is lost without the main process."""
        with contextlib.suppress(OSError):
            self.queue.send(record)


def _train_member(
    name: str,
    settings: TrainSettings,
    problem: str,
    data_dir: Path,
    cores: Collection[int],
    prepare: Callable[[], None] | None,
    sender: Connection,
) -> None:
    os.setsid()
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    if cores:
        os.sched_setaffinity(0, cores)
    _log_to(sender, name)
    try:
        if prepare is not None:
            prepare()
        outcome: TrainResult | Failure = _train(settings, problem, data_dir)
    except Exception as error:
        known = as_user_error(error)
        if known is None:
            raise
        outcome = Failure(str(known), known.exit_code)
    # It is lost without the main process.
    with contextlib.suppress(OSError):
        sender.send(outcome)


def _log_to(sender: Any, name: str) -> None:
    handler = _SendLines(sender)
    handler.setFormatter(logging.Formatter(f"{name}: %(message)s"))
    logger = logging.getLogger("t2t_repro")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    # TensorFlow adds a handler to the root logger, which would print lines twice.
    logger.propagate = False


def _train(settings: TrainSettings, problem: str, data_dir: Path) -> TrainResult:
    catalogue.load(settings.t2t_usr_dir)
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs.run_training import train

    return train(settings, PreparedData.load(data_dir, catalogue.problem(problem)))


def _stop_with_parent() -> None:
    """Save and end when the main process ends, even if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
