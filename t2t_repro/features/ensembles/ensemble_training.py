"""Train the members of an ensemble: runs that differ in their random seed.

On a CPU, they train at the same time, each on its share of the cores, because the
operations of a small model gain little from a second core. On GPUs, they train one
after the other.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ensembles.member_process import Failure, MemberProcess
from t2t_repro.features.ensembles.members import (
    FEWEST_MEMBERS,
    MOST_MEMBERS,
    EnsembleFolder,
)
from t2t_repro.runs.run import Run
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import all_checkpoints, latest_step
from t2t_repro.training.signals import SIGNALLED, SignalGuard

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs.run_training import TrainResult

logger = logging.getLogger(__name__)


class MemberError(UserError):
    """Error raised when members of an ensemble failed.

    Args:
        message: The message.
        exit_code: Exit code of the first one.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


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


def prepare_ensemble(
    settings: TrainSettings, members: int, problem: Problem
) -> list[TrainingConfig]:
    """Create the folders of an ensemble, or check that its members can be resumed.

    Args:
        settings: Settings of the ensemble; see `member_settings`.
        members: Number of models.
        problem: The problem.

    Returns:
        The training of each member.

    Raises:
        UserError: If the folder holds one run; or see `TrainingConfig.from_settings`.
        UsageError: If the number is out of range or not that of the ensemble in the
            folder; or see `TrainingConfig.from_settings`.
    """
    if not FEWEST_MEMBERS <= members <= MOST_MEMBERS:
        raise UsageError(
            f"received an ensemble of {members}, expected {FEWEST_MEMBERS} to "
            f"{MOST_MEMBERS} members."
        )
    output_dir = settings.output_dir
    recorded = EnsembleFolder.load(output_dir)
    if recorded is not None and recorded.members != members:
        _check_no_member_has_begun(output_dir, recorded, members)
    if Run.load(output_dir) is not None:
        raise UserError(
            f"received output_dir={output_dir}, which holds one run, expected the "
            "folder of an ensemble, or a new folder."
        )
    return [
        TrainingConfig.from_settings(member, problem)
        for member in member_settings(settings, members)
    ]


def _check_no_member_has_begun(
    output_dir: str, recorded: EnsembleFolder, members: int
) -> None:
    """Refuse to change the number of members of an ensemble with checkpoints.

    Raises:
        UsageError: If there is a checkpoint.
    """
    if any(map(all_checkpoints, recorded.folders(output_dir))):
        raise UsageError(
            f"received an ensemble of {members}, but the one in {output_dir} has "
            f"{recorded.members} members: give that number, or another output_dir."
        )


def train_ensemble(
    settings: TrainSettings,
    members: int,
    data: PreparedData,
    *,
    prepare_process: Callable[[], None] | None = None,
) -> list[TrainResult]:
    """Train several runs that differ in their seed, or resume their training.

    Each member trains in a separate process. If one fails, the others train to the end.
    A script must call this under `if __name__ == "__main__":`, because every process
    imports the script. On GPUs, this process must not have used them, because
    TensorFlow keeps their memory.

    Args:
        settings: Settings of the ensemble; see `member_settings`.
        members: Number of models. On a CPU, all are in memory at the same time.
        data: Prepared data of a registered problem.
        prepare_process: Function that can be pickled, which each process calls first,
            for example to set up TensorFlow.

    Returns:
        The outcome of each member.

    Raises:
        UsageError: If there are several workers; or see `prepare_ensemble`.
        UserError: If the folder cannot be used, or a member fails.
    """
    prepare_ensemble(settings, members, data.problem)
    _check_one_worker(settings)
    EnsembleFolder(members).save(settings.output_dir)
    one_by_one = _computes_on_gpus(settings)
    training = _Training(
        member_settings(settings, members),
        data,
        [()] * members if one_by_one else share_cores(members),
        at_once=1 if one_by_one else members,
        prepare_process=prepare_process,
    )
    return training.results()


def _check_one_worker(settings: TrainSettings) -> None:
    """Refuse several workers, whose members would not find each other.

    Raises:
        UsageError: If there are several.
    """
    from t2t_repro.training.cluster import find_cluster

    if find_cluster(settings.cluster) is not None:
        raise UsageError(
            "received an ensemble and several workers, expected one worker: train the "
            "members one after the other as single runs."
        )


def _computes_on_gpus(settings: TrainSettings) -> bool:
    import tensorflow as tf

    # Replicas on the CPU hide the GPUs.
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    return has_gpu and not settings.cpu_replicas


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
        prepare_process: Callable[[], None] | None,
    ) -> None:
        self._members = members
        self._data = data
        self._cores = cores
        self._at_once = at_once
        self._prepare_process = prepare_process
        self._running: dict[Connection, int] = {}
        self._processes: list[MemberProcess] = []
        self._results: dict[int, TrainResult] = {}
        self._failures: dict[int, Failure] = {}
        self._stop_signal: int | None = None

    def results(self) -> list[TrainResult]:
        """Train all members, and return their outcomes.

        Raises:
            MemberError: If members failed.
        """
        try:
            with SignalGuard(self._stop):
                while self._start_members():
                    ready = wait(list(self._running))
                    for connection in self._running.keys() & set(ready):
                        self._receive(connection)
        finally:
            self._stop_running()  # after an error
        self._check_no_failure()
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
                self._prepare_process,
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
        except (EOFError, OSError):  # it ended, perhaps while it sent something
            del self._running[connection]
            exit_code = self._processes[number].exit_code()
            if number not in self._results | self._failures:
                self._keep_outcome(number, self._missing_outcome(number, exit_code))
            return
        if not isinstance(message, logging.LogRecord):
            self._keep_outcome(number, message)
            return
        member_logger = logging.getLogger(message.name)
        if member_logger.isEnabledFor(message.levelno):
            member_logger.handle(message)

    def _keep_outcome(self, number: int, outcome: TrainResult | Failure) -> None:
        """Keep an outcome; a failure is logged now, not when all members have ended."""
        if isinstance(outcome, Failure):
            logger.error("member %d failed: %s", number + 1, outcome.message)
            self._failures[number] = outcome
        else:
            self._results[number] = outcome

    def _missing_outcome(self, number: int, exit_code: int) -> TrainResult | Failure:
        """Return the outcome of a process that ended without one."""
        if exit_code == -signal.SIGTERM and self._stop_signal is not None:
            return self._stopped_result(number)
        if exit_code < 0:
            return Failure(
                f"its process was killed by signal {-exit_code}; memory may have run "
                "out",
                SIGNALLED - exit_code,
            )
        return Failure(
            f"its process ended with exit code {exit_code}, see above", exit_code or 1
        )

    def _stopped_result(self, number: int) -> TrainResult:
        """Return the outcome of a member that was stopped before it trained."""
        from t2t_repro.runs.run_training import TrainResult

        folder = Path(self._members[number].output_dir)
        return TrainResult(folder, latest_step(folder), False, None)

    def _result(self, number: int) -> TrainResult:
        result = self._results.get(number) or self._stopped_result(number)
        if result.complete:
            return result
        # The processes receive SIGTERM, whatever the main process received.
        stop_signal = self._stop_signal or result.stop_signal
        return dataclasses.replace(result, stop_signal=stop_signal)

    def _check_no_failure(self) -> None:
        """Report failed members, whose messages are in the log.

        Raises:
            MemberError: If a member failed.
        """
        if self._failures:
            failed = sorted(self._failures)
            raise MemberError(
                f"failed: member {', '.join(str(number + 1) for number in failed)} of "
                f"{len(self._members)}; see the messages above. The same command "
                "resumes all members.",
                self._failures[failed[0]].exit_code,
            )

    def _stop(self, number: int) -> None:
        self._stop_signal = number
        self._stop_running()

    def _stop_running(self) -> None:
        for running in self._running.values():
            self._processes[running].stop()
