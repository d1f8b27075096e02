from __future__ import annotations

import io
import logging

import pytest

from t2t_repro.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that the test moves."""
    seconds = [100.0]
    monkeypatch.setattr("t2t_repro.progress.time.monotonic", lambda: seconds[0])
    return seconds


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    return lambda: caplog.messages


def test_a_message_shows_position_and_time_left(lines, clock):
    progress = Progress(1070, "step", done=1000, seconds_between_lines=None)
    progress.advance()
    clock[0] += 30.0
    progress.advance(10)
    progress.message("loss 1.5")
    # 10 steps took 30 seconds, and 59 are left.
    assert lines() == ["step 1011/1070  loss 1.5  time left 02:57"]


def test_the_first_batch_is_not_part_of_the_estimate(lines, clock):
    with Progress(100, "sentence") as progress:
        clock[0] += 50.0
        progress.advance(20)
        assert lines() == ["sentence 20/100"]
        clock[0] += 40.0
        progress.advance(20)
    assert lines()[1:] == ["sentence 40/100  0.5 per second  time left 02:00"]


def test_a_second_is_too_short_for_an_estimate(lines, clock):
    progress = Progress(100, "step", seconds_between_lines=None)
    progress.advance()
    for _ in range(2):
        clock[0] += 1.5
        progress.advance()
        progress.message("a")
    assert lines() == ["step 2/100  a", "step 3/100  a  time left 02:25"]


def test_a_line_appears_after_half_a_minute(lines, clock):
    with Progress(100, "sentence") as progress:
        for _ in range(10):
            clock[0] += 10.0
            progress.advance()
    assert [line.partition("/")[0] for line in lines()] == [
        "sentence 3",
        "sentence 6",
        "sentence 9",
    ]


def test_only_messages_appear_on_request(lines, clock):
    with Progress(100, "step", seconds_between_lines=None) as progress:
        clock[0] += 1000.0
        progress.advance()
        progress.message("a")
    assert lines() == ["step 1/100  a"]


def test_nothing_is_left_to_do_at_the_end(lines):
    with Progress(2, "step", seconds_between_lines=None) as progress:
        progress.advance(2)
        progress.message("")
    assert lines() == ["step 2/2  time left 00:00"]


@pytest.mark.parametrize("draws", [True, False])
def test_a_bar_is_drawn_only_if_asked(lines, monkeypatch, draws):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Progress(2, "step", draw_bar=draws) as progress:
        progress.advance(2)
        progress.message("loss 1.5")
    assert bool(terminal.getvalue()) == draws
    assert bool(lines()) == (not draws)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_and_messages_above_it(lines, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Progress(10, "step", done=4, keep_bar=True) as progress:
        progress.advance()
        progress.message("loss 1.5")
        progress.advance(5)
    shown = terminal.getvalue()
    assert "step 5  loss 1.5\n" in shown
    assert "5/10 [00:00<?, ?step/s]" in shown
    assert "10/10" in shown
    assert lines() == []
