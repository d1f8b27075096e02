from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest

from t2t_repro.progress import Progress, bars_allowed, may_draw_bars, status

ERASED = "\x1b[1A\x1b[2K"  # the line above


@pytest.fixture
def clock(monkeypatch):
    seconds = [100.0]
    monkeypatch.setattr("t2t_repro.progress.time.monotonic", lambda: seconds[0])
    return seconds


@pytest.fixture
def terminal(monkeypatch):
    """Return a terminal in place of standard error."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    # Pytest puts its own stream in place of `sys.stderr` after every fixture.
    monkeypatch.setattr("t2t_repro.progress.sys", SimpleNamespace(stderr=stream))
    return stream


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


def test_only_messages_appear_on_request_and_at_the_end_nothing_is_left(lines, clock):
    with Progress(2, "step", seconds_between_lines=None) as progress:
        clock[0] += 1000.0
        progress.advance()
        progress.message("a")
        progress.advance()
        progress.message("")
    assert lines() == ["step 1/2  a", "step 2/2  time left 00:00"]


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


def test_a_task_is_a_line_above_the_bar_while_it_lasts(lines, clock, terminal):
    with Progress(10, "step", done=4) as progress:
        with progress.task("compiling shape 1 of 6"):
            assert terminal.getvalue().endswith(f"{ERASED}compiling shape 1 of 6 ...")
            clock[0] += 4.25
        assert f"{ERASED}compiling shape 1 of 6 ... 4.2 s\n" in terminal.getvalue()
        progress.advance()
    assert lines() == []


def test_a_task_without_a_bar_is_logged_and_not_part_of_the_estimate(lines, clock):
    progress = Progress(100, "step", seconds_between_lines=None)
    progress.advance()
    with progress.task("compiling shape 1 of 6"):
        clock[0] += 504.25
    clock[0] += 30.0
    progress.advance(9)
    progress.message("")
    # 9 steps took 30 seconds, and 90 are left.
    task, line = lines()
    assert task == "compiling shape 1 of 6: 504.2 s"
    assert line == "step 10/100  time left 05:00"


def test_the_time_of_a_task_is_not_part_of_the_rate_of_the_bar(clock, terminal):
    with Progress(100, "step") as progress:
        progress.advance()
        with progress.task("compiling"):
            clock[0] += 500.0
        clock[0] += 2.0
        progress.advance(10)
    # 10 steps took 2 seconds.
    assert "11/100 [00:02<" in terminal.getvalue()
    assert " 5.00 step/s]" in terminal.getvalue()


@pytest.mark.parametrize("draws", [True, False])
def test_a_bar_is_drawn_only_if_asked(lines, terminal, draws):
    with Progress(2, "step", draw_bar=draws) as progress:
        progress.advance(2)
        progress.message("loss 1.5")
    assert bool(terminal.getvalue()) == draws
    assert bool(lines()) == (not draws)


def test_no_bar_is_drawn_where_none_is_allowed(terminal):
    with bars_allowed(False), bars_allowed(True), Progress(2, "step") as progress:
        progress.advance(2)
        assert not may_draw_bars()
    assert terminal.getvalue() == ""
    assert may_draw_bars()


def test_a_terminal_shows_a_bar_and_messages_above_it(lines, clock, terminal):
    with Progress(10, "step", done=4, keep_bar=True) as progress:
        clock[0] += 0.2
        progress.advance()
        progress.message("loss 1.5")
        progress.advance(5)
    shown = terminal.getvalue()
    assert "step 5  loss 1.5\n" in shown
    assert "5/10 [00:00<?, ? step/s]" in shown
    assert "10/10" in shown
    assert lines() == []


def test_the_estimate_weighs_units_in_the_order_of_their_completion(lines, clock):
    progress = Progress(6, "sentence", weights=[30, 20, 10, 10, 5, 5], warm=True)
    clock[0] += 100.0
    progress.advance(2)
    # Work of 50 took 100 seconds, and work of 30 is left.
    assert lines() == ["sentence 2/6  0.0 per second  time left 01:00"]
    clock[0] += 20.0
    progress.advance(1)
    progress.message("")
    assert lines()[1:] == ["sentence 3/6  time left 00:40"]


def test_weights_of_units_before_the_clock_starts_do_not_count(lines, clock):
    progress = Progress(4, "sentence", weights=[1000, 10, 20, 30])
    clock[0] += 500.0
    progress.advance()
    clock[0] += 40.0
    progress.advance(2)
    assert lines()[1:] == ["sentence 3/4  0.1 per second  time left 00:40"]


def test_an_unknown_total_has_no_estimate(lines, clock):
    progress = Progress(None, "sentence", warm=True)
    clock[0] += 50.0
    progress.advance(20)
    assert lines() == ["sentence 20  0.4 per second"]


def test_the_bar_shows_the_weighted_estimate(clock, terminal):
    progress = Progress(4, "step", weights=[60, 20, 20, 20], warm=True)
    clock[0] += 120.0
    progress.advance()
    assert "1/4 [02:00<02:00" in terminal.getvalue()
    progress.close()


def test_a_cleared_bar_leaves_an_empty_line(terminal):
    progress = Progress(4, "step")
    progress.clear()
    assert terminal.getvalue().endswith(ERASED)
    progress.advance()
    assert "1/4" in terminal.getvalue()
    progress.close()
    assert terminal.getvalue().endswith(ERASED)


def test_a_bar_is_drawn_at_most_ten_times_a_second(clock, terminal):
    with Progress(1000, "step") as progress:
        for _ in range(1000):
            clock[0] += 0.001
            progress.advance()
    assert 10 <= terminal.getvalue().count("/1000") <= 13


def test_a_terminal_shows_what_is_being_done_and_erases_it(terminal):
    with status("loading the model"):
        assert terminal.getvalue() == "\r\033[Kloading the model ..."
    assert terminal.getvalue().endswith("...\r\033[K")


def test_a_line_of_the_log_erases_what_is_being_done(terminal):
    logger, handler = logging.getLogger("t2t_repro"), logging.StreamHandler(terminal)
    logger.addHandler(handler)
    try:
        with status("loading"):
            logger.getChild("runs").warning("using checkpoint 7")
        logger.warning("later")
    finally:
        logger.removeHandler(handler)
    erased = "\r\033[K"
    assert terminal.getvalue() == (
        f"{erased}loading ...{erased}using checkpoint 7\n{erased}later\n"
    )


def test_nothing_but_a_terminal_is_told_what_is_being_done(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with status("loading the model"):
        pass
    assert stream.getvalue() == ""
