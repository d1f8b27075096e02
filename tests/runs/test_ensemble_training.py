"""The processes of an ensemble's members; none trains here.

tests/cli/test_train_ensemble.py trains real ones.
"""

from __future__ import annotations

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
from t2t_repro.runs import TrainResult, TrainSettings, ensemble_training
from t2t_repro.runs.ensemble_folder import EnsembleFolder
from t2t_repro.runs.ensemble_training import (
    check_ensemble_folder,
    member_settings,
    share_cores,
    train_ensemble,
)
from tests.runs.test_run import make_run

PROBLEM = catalogue.problem("algorithmic_identity")


def settings_in(folder, **changes):
    values = {"random_seed": 7, "train_steps": 40} | changes
    return TrainSettings(
        output_dir=str(folder), hparams_set="transformer_tiny", **values
    )


class FakeProcesses:
    """Stands in for `MemberProcess`; a member's messages are there at once.

    Args:
        messages: What each member sends before it ends.
        before: Function of the member's number, called when it starts.
    """

    def __init__(self, messages, before=lambda number: None):
        self.messages = messages
        self.before = before
        self.started = []
        self.stopped = []

    def __call__(self, name, settings, problem, data_dir, cores, begin):
        number = len(self.started)
        self.started.append((name, settings, problem, data_dir, tuple(cores), begin))
        receiver, sender = multiprocessing.Pipe(duplex=False)
        for message in self.messages[number]:
            sender.send(message)
        sender.close()
        self.before(number)
        return SimpleNamespace(
            connection=receiver,
            stop=lambda: self.stopped.append(number),
            exit_code=lambda: -9,
        )


def result_of(folder, number, complete=True, stop_signal=None):
    output_dir = Path(folder) / f"member-{number}"
    return TrainResult(output_dir, 40, complete, "average", stop_signal)


@pytest.fixture
def run_with(tmp_path, monkeypatch):
    """Return a function that trains an ensemble of two with fake processes."""

    def run(processes, **changes):
        monkeypatch.setattr(ensemble_training, "MemberProcess", processes)
        monkeypatch.setattr(ensemble_training, "share_cores", lambda n: [(4,), (5,)])
        data = SimpleNamespace(problem=PROBLEM, folder=Path("/data"))
        return train_ensemble(
            settings_in(tmp_path, **changes), 2, data, begin_process=print
        )

    return run


def test_members_have_folders_and_seeds_of_their_own(tmp_path):
    first, second = member_settings(settings_in(tmp_path), 2)
    assert first == settings_in(tmp_path / "member-1", random_seed=7)
    assert second == settings_in(tmp_path / "member-2", random_seed=8)


def test_each_member_trains_in_a_process_on_its_cores(tmp_path, run_with):
    results = [result_of(tmp_path, 1), result_of(tmp_path, 2)]
    processes = FakeProcesses([[results[0]], [results[1]]])
    assert run_with(processes) == results
    members = member_settings(settings_in(tmp_path), 2)
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


def test_a_failed_member_is_named_after_the_others_have_ended(tmp_path, run_with):
    processes = FakeProcesses([[UsageError("too large")], [result_of(tmp_path, 2)]])
    with pytest.raises(UsageError, match=r"^member 1: too large$"):
        run_with(processes)
    assert len(processes.started) == 2
    assert not processes.stopped


def test_a_process_that_dies_is_reported_with_its_exit_code(tmp_path, run_with):
    processes = FakeProcesses([[result_of(tmp_path, 1)], []])
    with pytest.raises(UserError, match=r"member 2: its process ended with .* -9"):
        run_with(processes)


def test_a_signal_stops_all_members_even_while_one_starts(tmp_path, run_with):
    def interrupt(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = result_of(tmp_path, 1, complete=False, stop_signal=signal.SIGTERM)
    # The second process ends before it has anything to save.
    processes = FakeProcesses([[stopped], []], interrupt)
    first, second = run_with(processes)
    outcomes = [(one.steps, one.complete, one.stop_signal) for one in (first, second)]
    assert outcomes == [(40, False, signal.SIGINT), (0, False, signal.SIGINT)]
    assert processes.stopped == [0, 1]


def test_no_member_starts_after_a_signal(tmp_path, run_with):
    def interrupt(number):
        os.kill(os.getpid(), signal.SIGTERM)

    processes = FakeProcesses([[result_of(tmp_path, 1)], []], interrupt)
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


def test_another_number_of_members_than_that_of_the_folder_is_refused(tmp_path):
    EnsembleFolder(3).save(tmp_path)
    with pytest.raises(UsageError, match=r"ensemble of 2, but the one in .* has 3"):
        check_ensemble_folder(settings_in(tmp_path), 2, PROBLEM.name)
    with pytest.raises(UsageError, match="ensemble of 1, expected at least 2"):
        check_ensemble_folder(settings_in(tmp_path), 1, PROBLEM.name)


def test_an_ensemble_does_not_begin_in_the_folder_of_a_run(tmp_path):
    make_run().save(tmp_path)
    with pytest.raises(UserError, match="which holds one run, expected the folder of"):
        check_ensemble_folder(settings_in(tmp_path), 2, PROBLEM.name)


def test_every_member_is_checked(tmp_path):
    (tmp_path / "member-2").mkdir()
    (tmp_path / "member-2" / "metrics.jsonl").touch()
    with pytest.raises(UserError, match=r"member-2, which holds metrics\.jsonl"):
        check_ensemble_folder(settings_in(tmp_path), 2, PROBLEM.name)
