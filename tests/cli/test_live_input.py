from __future__ import annotations

import contextlib
import os
import queue
import threading
import time

import pytest

from t2t_repro.cli import streams
from t2t_repro.cli.streams import LiveLines, open_input
from t2t_repro.errors import UserError

SECONDS = 10.0  # far more than a thread needs


class Pipe:
    """A pipe whose lines are read while a test writes them."""

    def __init__(self):
        self.reader, self._writer = os.pipe()
        self.lines = LiveLines(self.reader, "the pipe")

    def write(self, content):
        os.write(self._writer, content)

    def write_and_wait(self, content):
        """Write lines, and wait until they have arrived."""
        expected = self.lines._arrived.qsize() + content.count(b"\n")
        self.write(content)
        deadline = time.monotonic() + SECONDS
        while self.lines._arrived.qsize() < expected and time.monotonic() < deadline:
            time.sleep(0.001)

    def end(self):
        os.close(self._writer)
        self._writer = None

    def close(self):
        """End the reading thread before its descriptor gets a new meaning."""
        if self._writer is not None:
            self.end()
        deadline = time.monotonic() + SECONDS
        while not self.lines._ended.wait(0.001) and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):  # it may wait for a place
                self.lines._arrived.get_nowait()
        os.close(self.reader)


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_lines_are_read_while_the_stream_stays_open(pipe):
    chunks = pipe.lines.chunks(10)
    pipe.write_and_wait(b"one\ntwo\n\nnot yet complete")
    assert next(chunks) == ["one", "two", ""]
    pipe.write_and_wait(b", now it is\n")
    assert next(chunks) == ["not yet complete, now it is"]
    pipe.end()
    assert list(chunks) == []


def test_a_chunk_has_at_most_the_requested_lines(pipe):
    pipe.write(b"a\nb\nc\nd\ne")
    pipe.end()
    assert pipe.lines._ended.wait(SECONDS)
    assert list(pipe.lines.chunks(2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_stream_that_ends_in_time_is_returned_as_a_whole(pipe):
    pipe.write(b"a\nb\n")
    assert pipe.lines.all_within(0.01) is None
    pipe.end()
    assert pipe.lines.all_within(SECONDS) == ["a", "b"]


def test_an_error_of_a_stream_that_ends_in_time_comes_first(pipe):
    pipe.write(b"fine\n\xff\n")
    with pytest.raises(UserError, match="the pipe:2: received byte 0xFF"):
        pipe.lines.all_within(SECONDS)
    pipe.end()


def test_an_error_comes_after_the_lines_before_it(pipe):
    pipe.write(b"fine\n\xff\nnever read\n")
    chunks = pipe.lines.chunks(1)
    assert next(chunks) == ["fine"]
    with pytest.raises(UserError, match="the pipe:2: received byte 0xFF"):
        next(chunks)
    pipe.end()


def test_a_writer_that_is_too_fast_has_to_wait(monkeypatch):
    monkeypatch.setattr(streams, "MOST_WAITING", 3)
    pipe = Pipe()
    pipe.write(b"".join(b"%d\n" % number for number in range(100)))
    pipe.end()
    assert pipe.lines.all_within(0.05) is None
    assert pipe.lines._arrived.qsize() == 3
    found = [line for chunk in pipe.lines.chunks(10) for line in chunk]
    assert found == [str(number) for number in range(100)]
    pipe.close()


def named_pipe(path, *contents, pause=0.0):
    """Make a named pipe to which a thread writes, with pauses after the first text."""
    os.mkfifo(path)

    def write():
        with path.open("wb", buffering=0) as file:
            for content in contents:
                file.write(content)
                time.sleep(pause)

    threading.Thread(target=write, daemon=True).start()
    return str(path)


def test_a_pipe_that_ends_at_once_is_read_like_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("t2t_repro.cli.streams.SECONDS_FOR_A_PIPE", SECONDS)
    assert open_input(named_pipe(tmp_path / "pipe", b"a\n\nb")) == ["a", "", "b"]
    path = named_pipe(tmp_path / "broken", b"a\n\xff\n")
    with pytest.raises(UserError, match="broken:2: received byte 0xFF"):
        open_input(path)


def test_a_pipe_that_stays_open_is_read_while_it_is_open(tmp_path):
    path = named_pipe(tmp_path / "pipe", b"a\n", b"b\n", pause=0.5)
    lines = open_input(path)
    assert isinstance(lines, LiveLines)
    assert not lines.is_terminal
    assert [line for chunk in lines.chunks(10) for line in chunk] == ["a", "b"]


def test_a_file_is_read_at_once(tmp_path):
    (tmp_path / "file").write_text("a\nb\n")
    assert open_input(str(tmp_path / "file")) == ["a", "b"]
    assert open_input("/dev/null") == []
