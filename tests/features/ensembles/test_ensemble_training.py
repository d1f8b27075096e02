"""The processes of an ensemble's members; none trains here.

tests/features/ensembles/test_train_ensemble.py trains real ones.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ensembles import ensemble_training
from t2t_repro.features.ensembles.ensemble_training import (
    MemberError,
    prepare_ensemble,
    share_cores,
    train_ensemble,
)
from t2t_repro.features.ensembles.member_process import Failure
from t2t_repro.features.ensembles.members import EnsembleFolder
from t2t_repro.runs import TrainResult, TrainSettings
from t2t_repro.runs.training_config import TrainingConfig
from tests.features.ensembles.test_members import save_run
from tests.runs.test_run import make_run

PROBLEM = catalogue.problem("algorithmic_identity")


def settings_in(folder, **changes):
    values = {"random_seed": 7, "train_steps": 40} | changes
    return TrainSettings(
        output_dir=str(folder), hparams_set="transformer_tiny", **values
    )


class FakeProcesses:
    """Replaces `MemberProcess`: every member has sent its messages when it starts.

    Args:
        messages: What each member sends before it ends.
        before: Function of the member's number, called when it starts.
        exit_code: Exit code of every process.
    """

    def __init__(self, messages, before=lambda number: None, exit_code=-15):
        self.messages = messages
        self.before = before
        self.exit_code = exit_code
        self.started = []
        self.stopped = []

    def __call__(self, name, settings, problem, data_dir, cores, prepare):
        number = len(self.started)
        self.started.append((name, settings, problem, data_dir, tuple(cores), prepare))
        receiver, sender = multiprocessing.Pipe(duplex=False)
        for message in self.messages[number]:
            sender.send(message)
        sender.close()
        self.before(number)
        return SimpleNamespace(
            connection=receiver,
            stop=lambda: self.stopped.append(number),
            exit_code=lambda: self.exit_code,
        )


def result_of(folder, number, complete=True, stop_signal=None):
    output_dir = Path(folder) / f"member-{number}"
    return TrainResult(output_dir, 40, complete, "average", stop_signal)


@pytest.fixture
def run_with(tmp_path, monkeypatch):
    def run(processes, **changes):
        monkeypatch.setattr(ensemble_training, "MemberProcess", processes)
        monkeypatch.setattr(ensemble_training, "share_cores", lambda n: [(4,), (5,)])
        data = SimpleNamespace(problem=PROBLEM, folder=Path("/data"))
        return train_ensemble(
            settings_in(tmp_path, **changes), 2, data, prepare_process=print
        )

    return run


def test_each_member_trains_in_a_process_on_its_cores(tmp_path, run_with):
    results = [result_of(tmp_path, 1), result_of(tmp_path, 2)]
    processes = FakeProcesses([[results[0]], [results[1]]])
    assert run_with(processes) == results
    members = [
        settings_in(tmp_path / "member-1", random_seed=7),
        settings_in(tmp_path / "member-2", random_seed=8),
    ]
    common = (PROBLEM.name, Path("/data"))
    assert processes.started == [
        ("member 1", members[0], *common, (4,), print),
        ("member 2", members[1], *common, (5,), print),
    ]
    assert EnsembleFolder.load(tmp_path) == EnsembleFolder(2)
    assert not processes.stopped


def test_on_gpus_members_train_one_after_the_other(tmp_path, run_with, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a GPU"])
    waited = []
    receive = ensemble_training._Training._receive

    def counted(training, connection):
        waited.append(len(training._running))
        receive(training, connection)

    monkeypatch.setattr(ensemble_training._Training, "_receive", counted)
    processes = FakeProcesses([[result_of(tmp_path, 1)], [result_of(tmp_path, 2)]])
    run_with(processes)
    assert set(waited) == {1}
    assert [start[4] for start in processes.started] == [(), ()]


def test_log_lines_of_members_are_logged_here(tmp_path, run_with, caplog):
    values = {"name": "t2t_repro.any", "levelno": logging.INFO, "levelname": "INFO"}
    shown = logging.makeLogRecord(values | {"msg": "member 1: step 3"})
    hidden = logging.makeLogRecord(values | {"levelno": logging.DEBUG, "msg": "no"})
    messages = [
        [shown, hidden, result_of(tmp_path, 1)],
        [result_of(tmp_path, 2)],
    ]
    with caplog.at_level(logging.INFO, logger="t2t_repro"):
        run_with(FakeProcesses(messages))
    assert caplog.messages == ["member 1: step 3"]


def test_a_failure_is_logged_at_once_and_the_others_train_to_the_end(
    tmp_path, run_with, caplog
):
    messages = [[Failure("too large", 2)], [result_of(tmp_path, 2)]]
    processes = FakeProcesses(messages)
    with pytest.raises(MemberError, match="failed: member 1 of 2; see") as error:
        run_with(processes)
    assert error.value.exit_code == 2
    assert caplog.messages == ["member 1 failed: too large"]
    assert len(processes.started) == 2
    assert not processes.stopped


@pytest.mark.parametrize(
    ("exit_code", "message", "expected"),
    [
        (-9, "its process was killed by signal 9; memory may have run out", 137),
        (3, "its process ended with exit code 3, see above", 3),
        (0, "its process ended with exit code 0, see above", 1),
        # Nobody asked this one to stop.
        (-15, "its process was killed by signal 15; memory may have run out", 143),
    ],
)
def test_a_process_that_dies_is_reported(
    tmp_path, run_with, caplog, exit_code, message, expected
):
    processes = FakeProcesses([[result_of(tmp_path, 1)], []], exit_code=exit_code)
    with pytest.raises(MemberError, match="failed: member 2 of 2") as error:
        run_with(processes)
    assert caplog.messages == [f"member 2 failed: {message}"]
    assert error.value.exit_code == expected


def kill_at(member, signal_number):
    def interrupt(number):
        if number == member:
            os.kill(os.getpid(), signal_number)

    return interrupt


def test_a_signal_stops_all_members_even_while_one_starts(tmp_path, run_with):
    stopped = result_of(tmp_path, 1, complete=False, stop_signal=signal.SIGTERM)
    # The second process ends before it has anything to save.
    processes = FakeProcesses([[stopped], []], kill_at(1, signal.SIGINT))
    first, second = run_with(processes)
    outcomes = [(one.steps, one.complete, one.stop_signal) for one in (first, second)]
    assert outcomes == [(40, False, signal.SIGINT), (0, False, signal.SIGINT)]
    assert processes.stopped == [0, 1]


def test_a_crash_is_no_stop_even_after_a_signal(tmp_path, run_with):
    stop = kill_at(1, signal.SIGTERM)
    processes = FakeProcesses([[], []], stop, exit_code=-9)
    with pytest.raises(MemberError, match="failed: member 1, 2 of 2"):
        run_with(processes)


def test_a_member_that_somebody_else_stopped_keeps_its_signal(tmp_path, run_with):
    stopped = result_of(tmp_path, 1, complete=False, stop_signal=signal.SIGTERM)
    first, _ = run_with(FakeProcesses([[stopped], [result_of(tmp_path, 2)]]))
    assert first.stop_signal == signal.SIGTERM


def test_several_workers_are_refused_before_anything_is_written(
    tmp_path, run_with, monkeypatch
):
    workers = {"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}}
    task = {"task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(workers | task))
    with pytest.raises(UsageError, match="an ensemble and several workers"):
        run_with(FakeProcesses([[], []]))
    assert EnsembleFolder.load(tmp_path) is None


def test_no_member_starts_after_a_signal(tmp_path, run_with):
    stop = kill_at(0, signal.SIGTERM)
    processes = FakeProcesses([[result_of(tmp_path, 1)], []], stop)
    first, second = run_with(processes)
    assert first.complete
    assert first.stop_signal is None
    assert (second.complete, second.stop_signal) == (False, signal.SIGTERM)
    assert len(processes.started) == 1


def test_an_error_stops_the_processes(tmp_path, run_with):
    def fail(number):
        if number == 1:
            raise MemoryError

    processes = FakeProcesses([[], []], fail)
    with pytest.raises(MemoryError):
        run_with(processes)
    assert processes.stopped == [0]


def test_cores_are_shared_if_there_is_one_for_each(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 1, 5, 7, 9}, False)
    assert share_cores(2) == [[1, 5, 9], [3, 7]]
    assert share_cores(5) == [[1], [3], [5], [7], [9]]
    assert share_cores(6) == [()] * 6
    monkeypatch.delattr(os, "sched_getaffinity")
    assert share_cores(2) == [(), ()]


def test_another_number_of_members_is_refused_once_one_has_a_checkpoint(tmp_path):
    EnsembleFolder(3).save(tmp_path)
    prepare_ensemble(settings_in(tmp_path), 2, PROBLEM)
    save_run(tmp_path / "member-3")
    with pytest.raises(UsageError, match=r"ensemble of 2, but the one in .* has 3"):
        prepare_ensemble(settings_in(tmp_path), 2, PROBLEM)
    with pytest.raises(UsageError, match="ensemble of 1, expected 2 to 100"):
        prepare_ensemble(settings_in(tmp_path), 1, PROBLEM)


def test_one_run_does_not_train_in_the_folder_of_an_ensemble(tmp_path):
    EnsembleFolder(2).save(tmp_path)
    with pytest.raises(UserError, match="the folder of an ensemble, expected the"):
        TrainingConfig.from_settings(settings_in(tmp_path), PROBLEM)


def test_an_ensemble_does_not_begin_in_the_folder_of_a_run_or_of_something_else(
    tmp_path,
):
    (tmp_path / "member-2").mkdir()
    (tmp_path / "member-2" / "metrics.jsonl").touch()
    with pytest.raises(UserError, match=r"member-2, which holds metrics\.jsonl"):
        prepare_ensemble(settings_in(tmp_path), 2, PROBLEM)
    make_run().save(tmp_path)
    with pytest.raises(UserError, match="which holds one run, expected the folder of"):
        prepare_ensemble(settings_in(tmp_path), 2, PROBLEM)
