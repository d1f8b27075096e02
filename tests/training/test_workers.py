"""Workers decide alike. The sum over workers is replaced: no worker is needed."""

from __future__ import annotations

import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training.cluster import (
    LostWorkerError,
    Workers,
    errors_of_other_workers,
)


@pytest.fixture
def second(monkeypatch):
    """Return worker 1 of 3, and the numbers that it adds to those of the others."""
    workers = Workers(tf.distribute.get_strategy())
    workers.count, workers.number = 3, 1
    workers.given, workers.others = [], 0

    def total(value):
        workers.given.append(value)
        return value + workers.others

    monkeypatch.setattr(workers, "total", total)
    return workers


def test_a_single_process_is_the_chief_and_waits_for_nobody():
    workers = Workers(tf.distribute.get_strategy())
    assert (workers.count, workers.number, workers.is_chief) == (1, 0, True)
    assert (workers.first_replica, workers.replicas_here) == (0, 1)
    assert workers.total(7) == 7
    assert workers.agree_to_stop(3, True, is_last=False)
    assert not workers.agree_to_stop(10, False, is_last=True)
    assert workers.when_stopping == "at the end of this step"
    workers.check_same_step(5)


@pytest.mark.parametrize(("stopping", "others"), [(False, 0), (True, 0), (False, 1)])
def test_workers_stop_together_at_a_multiple_of_ten_steps(second, stopping, others):
    second.others = others
    assert not second.agree_to_stop(19, stopping, is_last=False)
    assert second.given == []
    agreed = second.agree_to_stop(20, stopping, is_last=False)
    assert agreed == (stopping or others > 0)
    assert second.given == [int(stopping)]
    assert second.when_stopping == "at the next multiple of 10 steps"


def test_a_signal_of_another_worker_before_the_last_step_stops_all(second):
    second.others = 1
    assert second.agree_to_stop(19, False, is_last=True)
    assert second.given == [0]


def test_workers_that_resume_from_other_steps_are_refused(second):
    second.others = 2 * 40
    second.check_same_step(40)
    with pytest.raises(UserError, match="worker 1 resumes from step 0, other workers"):
        second.check_same_step(0)


@pytest.mark.parametrize(("number", "order"), [(0, ["block", 0]), (1, [0, "block"])])
def test_the_chief_runs_a_block_before_the_others(second, number, order):
    second.number = number
    with second.chief_first():
        second.given.append("block")
    assert second.given == order


def test_an_error_of_the_chief_does_not_keep_the_others_waiting(second):
    second.number = 0
    with pytest.raises(UserError, match="unreadable"), second.chief_first():
        raise UserError("unreadable")
    assert second.given == [0]


@pytest.mark.parametrize("kind", ["UnavailableError", "AbortedError"])
def test_a_lost_worker_is_a_message_with_an_exit_code_of_its_own(second, kind):
    error = getattr(tf.errors, kind)(None, None, "connection reset")
    message = "worker 1 of 3 cannot reach"
    with (
        pytest.raises(LostWorkerError, match=message) as caught,
        errors_of_other_workers(second),
    ):
        raise error
    assert caught.value.exit_code == 75


def test_the_same_error_of_a_single_process_is_not_explained():
    workers = Workers(tf.distribute.get_strategy())
    with pytest.raises(tf.errors.AbortedError), errors_of_other_workers(workers):
        raise tf.errors.AbortedError(None, None, "aborted")
