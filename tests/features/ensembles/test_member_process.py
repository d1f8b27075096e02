"""What a member's process does, called in the process of the test.

tests/features/ensembles/test_train_ensemble.py starts real ones.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from t2t_repro.features.ensembles import member_process
from t2t_repro.features.ensembles.member_process import Failure
from t2t_repro.runs import TrainSettings
from t2t_repro.training.recovery import DivergedError

SETTINGS = TrainSettings(output_dir="run", hparams_set="transformer_tiny")


@pytest.fixture
def member(monkeypatch):
    package = logging.getLogger("t2t_repro")
    before = package.level, package.propagate, list(package.handlers)
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    restricted = []
    monkeypatch.setattr(
        os, "sched_setaffinity", lambda pid, cores: restricted.append(cores), False
    )

    def run(train, prepare=None, cores=(3,)):
        monkeypatch.setattr(member_process, "_train", train)
        receiver, sender = multiprocessing.Pipe(duplex=False)
        arguments = ("member 2", SETTINGS, "any", Path("/data"), cores, prepare)
        member_process._train_member(*arguments, sender)
        sender.close()
        messages = []
        while receiver.poll():
            try:
                messages.append(receiver.recv())
            except EOFError:
                break
        return messages, restricted

    yield run
    package.setLevel(before[0])
    package.propagate = before[1]
    package.handlers[:] = before[2]


def test_a_member_sends_its_log_and_then_its_outcome(member):
    def train(settings, problem, data_dir):
        logging.getLogger("t2t_repro.any").info("step %d", 3)
        return settings, problem, data_dir

    def prepare():
        logging.getLogger("t2t_repro.any").info("prepared")

    (first, line, outcome), restricted = member(train, prepare)
    assert first.getMessage() == "member 2: prepared"
    assert (line.name, line.levelno) == ("t2t_repro.any", logging.INFO)
    assert line.getMessage() == "member 2: step 3"
    assert outcome == (SETTINGS, "any", Path("/data"))
    assert restricted == [(3,)]
    member(train, cores=())
    assert restricted == [(3,)]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        # It cannot be pickled.
        (DivergedError("the loss is nan", 30, None), "the loss is nan at step 30"),
        (FileNotFoundError(2, "No such file", "a.txt"), "a.txt: No such file"),
    ],
)
def test_errors_are_sent_as_text(member, error, message):
    def fail(*given):
        raise error

    ((outcome,), _) = member(fail)
    assert isinstance(outcome, Failure)
    assert outcome.exit_code == 1
    assert message in outcome.message


def test_an_error_of_the_program_is_raised(member):
    def fail(*given):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        member(fail)
