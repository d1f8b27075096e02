from __future__ import annotations

import os
import signal

import pytest

from t2t_repro.training import signals
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
def test_a_later_interrupt_acts_as_usual(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(signals.time, "monotonic", lambda: clock[0])
    received = []
    with SignalGuard(received.append):
        os.kill(os.getpid(), signal.SIGINT)
        clock[0] += 1.9
        os.kill(os.getpid(), signal.SIGINT)  # the same request, delivered twice
        os.kill(os.getpid(), signal.SIGTERM)
        clock[0] += 0.2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert received == [signal.SIGINT]


def test_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with SignalGuard(lambda number: None):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert after == before
