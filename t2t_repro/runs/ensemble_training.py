"""Train the members of an ensemble: runs that differ in their random seed.

On a CPU, they train at the same time, each on its share of the cores. Two small models
on a core each take less time than one after the other on both cores (measured in
docs/results.md, section Multi30k). On GPUs, they train one after the other.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.errors import UsageError, UserError
from t2t_repro.runs.ensemble_folder import SMALLEST, EnsembleFolder
from t2t_repro.runs.member_process import MemberProcess
from t2t_repro.runs.resuming import check_run_folder
from t2t_repro.runs.run import Run
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import latest_step
from t2t_repro.training.signals import SignalGuard

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs.training import TrainResult


def member_settings(settings: TrainSettings, members: int) -> list[TrainSettings]:
    """Return the settings of each member: its folder and its seed.

    Args:
        settings: Settings of the ensemble; the seed is the first member's.
        members: Number of models.
    """
    folders = EnsembleFolder(members).folders(settings.output_dir)
    return [
        settings.replace(
            output_dir=str(folder), random_seed=settings.random_seed + number
        )
        for number, folder in enumerate(folders)
    ]


def check_ensemble_folder(settings: TrainSettings, members: int, problem: str) -> None:
    """Create the folders of an ensemble, or check that its members can be resumed.

    Args:
        settings: Settings of the ensemble; see `member_settings`.
        members: Number of models.
        problem: Name of the problem.

    Raises:
        UserError: If the folder holds one run; or see `check_run_folder`.
        UsageError: If the number is too small or not that of the ensemble in the
            folder; or see `check_run_folder`.
    """
    if members < SMALLEST:
        raise UsageError(
            f"received an ensemble of {members}, expected at least {SMALLEST} members."
        )
    output_dir = settings.output_dir
    recorded = EnsembleFolder.load(output_dir)
    if recorded is not None and recorded.members != members:
        raise UsageError(
            f"received an ensemble of {members}, but the one in {output_dir} has "
            f"{recorded.members} members: give that number, or another output_dir."
        )
    if Run.load(output_dir) is not None:
        raise UserError(
            f"received output_dir={output_dir}, which holds one run, expected the "
            "folder of an ensemble, or another one for a new ensemble."
        )
    for member in member_settings(settings, members):
        check_run_folder(member, problem)


def train_ensemble(
    settings: TrainSettings,
    members: int,
    data: PreparedData,
    *,
    begin_process: Callable[[], None] | None = None,
) -> list[TrainResult]:
    """Train several runs that differ in their seed, or resume their training.

    Each member trains in a process of its own. If one fails, the others complete
    theirs. A script must call this under `if __name__ == "__main__":`, because every
    process imports the script.

    Args:
        settings: Settings of the ensemble; see `member_settings`.
        members: Number of models.
        data: Prepared data of a registered problem.
        begin_process: Function that can be pickled, which each process calls first,
            for example to set up TensorFlow.

    Returns:
        The outcome of each member.

    Raises:
        UsageError: See `check_ensemble_folder`.
        UserError: If the folder cannot be used, or a member fails.
    """
    import tensorflow as tf

    check_ensemble_folder(settings, members, data.problem.name)
    EnsembleFolder(members).save(settings.output_dir)
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    training = _Training(
        member_settings(settings, members),
        data,
        [()] * members if has_gpu else share_cores(members),
        at_once=1 if has_gpu else members,
        begin_process=begin_process,
    )
    return training.results()


def share_cores(members: int) -> list[Sequence[int]]:
    """Return each member's share of this process's cores.

    A share is empty, which means all cores, if there are fewer cores than members or
    the operating system cannot restrict a process.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [()] * members
    cores = sorted(os.sched_getaffinity(0))
    return [cores[i::members] if len(cores) >= members else () for i in range(members)]


class _Training:
    """Processes that train the members, and their outcomes."""

    def __init__(
        self,
        members: Sequence[TrainSettings],
        data: PreparedData,
        cores: Sequence[Sequence[int]],
        at_once: int,
        begin_process: Callable[[], None] | None,
    ) -> None:
        self._members = members
        self._data = data
        self._cores = cores
        self._at_once = at_once
        self._begin_process = begin_process
        self._running: dict[Connection, int] = {}
        self._processes: list[MemberProcess] = []
        self._outcomes: dict[int, TrainResult | UserError] = {}
        self._stop_signal: int | None = None

    def results(self) -> list[TrainResult]:
        """Train all members, and return their outcomes.

        Raises:
            UserError: The error of the first member that failed.
        """
        try:
            with SignalGuard(self._stop):
                while self._start_members():
                    ready = wait(list(self._running))
                    for connection in self._running.keys() & set(ready):
                        self._receive(connection)
        finally:
            self._stop_running()  # after an error
        return [self._result(number) for number in range(len(self._members))]

    def _start_members(self) -> bool:
        """Start as many members as may run, and return whether any is running."""
        while (
            self._stop_signal is None
            and len(self._running) < self._at_once
            and len(self._processes) < len(self._members)
        ):
            number = len(self._processes)
            process = MemberProcess(
                f"member {number + 1}",
                self._members[number],
                self._data.problem.name,
                self._data.folder,
                self._cores[number],
                self._begin_process,
            )
            self._processes.append(process)
            self._running[process.connection] = number
            if self._stop_signal is not None:  # received while the process started
                process.stop()
        return bool(self._running)

    def _receive(self, connection: Connection) -> None:
        """Log a record of a member, or keep its outcome; at the end, wait for it."""
        number = self._running[connection]
        try:
            message = connection.recv()
        except EOFError:
            del self._running[connection]
            exit_code = self._processes[number].exit_code()
            if number not in self._outcomes:
                self._outcomes[number] = self._without_outcome(number, exit_code)
            return
        if not isinstance(message, logging.LogRecord):
            self._outcomes[number] = message
            return
        logger = logging.getLogger(message.name)
        if logger.isEnabledFor(message.levelno):
            logger.handle(message)

    def _without_outcome(self, number: int, exit_code: int) -> TrainResult | UserError:
        """Return the outcome of a process that ended without one."""
        if self._stop_signal is not None:
            return self._stopped(number)
        return UserError(
            f"its process ended with exit code {exit_code}: see the messages above; "
            "without one, memory may have run out. The same command resumes all "
            "members."
        )

    def _stopped(self, number: int) -> TrainResult:
        """Return the outcome of a member that was stopped before it trained."""
        from t2t_repro.runs.training import TrainResult

        folder = Path(self._members[number].output_dir)
        return TrainResult(folder, latest_step(folder), False, None)

    def _result(self, number: int) -> TrainResult:
        outcome = self._outcomes.get(number) or self._stopped(number)
        if isinstance(outcome, UserError):
            outcome.args = (f"member {number + 1}: {outcome}",)
            raise outcome
        if outcome.stop_signal is None and outcome.complete:
            return outcome
        # The processes receive SIGTERM, whatever the main process received.
        return dataclasses.replace(outcome, stop_signal=self._stop_signal)

    def _stop(self, number: int) -> None:
        self._stop_signal = number
        self._stop_running()

    def _stop_running(self) -> None:
        for running in self._running.values():
            self._processes[running].stop()
