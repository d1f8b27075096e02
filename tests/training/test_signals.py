from __future__ import annotations

import os
import signal

import pytest

from t2t_repro.training.signals import SignalGuard


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_action_receives_the_signal(number):
    received = []
    with SignalGuard(received.append):
        os.kill(os.getpid(), number)
    assert received == [number]


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt, which a shell's background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_acts_as_usual():
    received = []
    with SignalGuard(received.append):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert received == [signal.SIGINT]


def test_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with SignalGuard(lambda number: None):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert after == before
