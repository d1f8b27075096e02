"""Text of users and models never controls the terminal that shows it."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from t2t_repro.cli.main import escaped, guarded, main, run_reported
from t2t_repro.cli.streams import write_lines
from t2t_repro.errors import UserError

CLEAR = "\x1b[2J"  # clears the screen
HARMFUL = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
]


class Terminal(io.TextIOWrapper):
    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self):
        return True

    def shown(self):
        return self.buffer.getvalue().decode()


def with_terminals(monkeypatch):
    """Put terminals in place of standard output and standard error."""
    streams = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    return streams


def test_only_tabs_and_line_feeds_are_shown_as_they_are():
    shown = [text for text in HARMFUL if escaped(text) == text]
    assert shown == ["\t", "\n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31m red", r"\x1b[31m red"),
        ("\x9b2J", r"\x9b2J"),
        ("a\rb\x7f", r"a\rb\x7f"),
        ("left \u202e thgir", r"left \u202e thgir"),
    ],
)
def test_escapes_name_the_character(text, expected):
    assert escaped(text) == expected


@pytest.mark.parametrize(
    "text", ["Grün 漢字 🙂", "\u200bعربي\u200f", "é e\u0301", "\\x1b"]
)
def test_text_that_controls_nothing_is_unchanged(text):
    assert escaped(text) == text


def test_what_a_command_prints_logs_or_reports_is_escaped(monkeypatch):
    terminals = with_terminals(monkeypatch)

    def action():
        sys.stdout.write(f"source {CLEAR}\n")
        write_lines("-", [f"translation {CLEAR}"])
        logging.getLogger("t2t_repro.test").warning("received %s", CLEAR)
        raise UserError(f"received {CLEAR}")

    assert run_reported("t2t", action) == 1
    assert terminals[0].shown() == "source \\x1b[2J\ntranslation \\x1b[2J\n"
    assert terminals[1].shown() == "received \\x1b[2J\nt2t: received \\x1b[2J\n"


def test_the_name_of_an_unknown_command_is_escaped(monkeypatch):
    terminals = with_terminals(monkeypatch)
    assert main([f"{CLEAR}decode"]) == 2
    assert "\x1b" not in terminals[1].shown()


def test_a_pipe_and_a_file_get_the_text_as_it_is(monkeypatch, tmp_path):
    def action():
        sys.stdout.write(f"{CLEAR}\n")
        write_lines("-", ["\r\x85"])
        write_lines(str(tmp_path / "file"), [CLEAR])
        return 0

    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert run_reported("t2t", action) == 0
        assert pipe.buffer.getvalue() == f"{CLEAR}\n\r\x85\n".encode()
    assert (tmp_path / "file").read_text() == f"{CLEAR}\n"


def test_a_stream_that_is_no_terminal_is_not_wrapped():
    stream = io.StringIO()
    assert guarded(stream) is stream
