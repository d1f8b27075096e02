"""`t2t decode` on a terminal and in a pipe; no text controls the terminal."""

from __future__ import annotations

import io
import logging
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time

import pytest

from t2t_repro.cli.main import escaped, guarded, main, run_reported
from t2t_repro.cli.streams import write_lines
from t2t_repro.errors import UserError

SECONDS = 120.0
COMMAND = [sys.executable, "-m", "t2t_repro.cli.main", "decode"]
# The same command with a system that answers in upper case, without TensorFlow.
QUICK_PROGRAM = """
import sys
from t2t_repro.cli import decode
from t2t_repro.cli.main import main
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.progress import status

class UpperCase:
    def with_problem_defaults(self, hparams):
        return hparams

    def warm_up(self, hparams):
        pass

    def translator(self, hparams):
        return self

    def stream(self, sentences, advance, *, prefixes, first):
        for sentence in sentences:
            advance(1)
            yield [Hypothesis(sentence.upper(), -1.0)]

def load(args, hparams, *, parallel_batches):
    with status("loading the model"):
        return UpperCase()

decode.load_translating_system = load
sys.exit(main(sys.argv[1:]))
"""
QUICK_COMMAND = [sys.executable, "-c", QUICK_PROGRAM, "decode"]
SENTENCES = ["one times: the house is red .", "", "two times: the ship is blue ."]


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, arguments):
        self.process, self._master = pty.fork()
        if not self.process:
            # A job in the background of a shell ignores the signal.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execv(arguments[0], arguments)
        self.shown = ""

    def type(self, text):
        os.write(self._master, text.encode())

    def read_until(self, pattern=None):
        """Return the text up to a pattern, by default up to the end."""
        shown, deadline = "", time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if pattern and re.search(pattern, shown):
                return shown
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    block = os.read(self._master, 4096).decode(errors="replace")
                except OSError:  # the command has ended
                    return shown
                shown += block
                self.shown += block
        raise AssertionError(f"{pattern!r} did not appear in {self.shown!r}")

    def exit_code(self):
        os.close(self._master)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def test_a_terminal_gets_a_prompt_and_an_answer_to_every_line(trained):
    flags = ["--output_dir", str(trained.output_dir), "--decode_hparams=beam_size=2"]
    terminal = Terminal([*COMMAND, *flags])
    start = terminal.read_until(r"> $")
    for doing in ("importing TensorFlow", "loading the model", "preparing the search"):
        # Each erases the one before it.
        assert f"\r\x1b[K{doing} ..." in start
    assert start.endswith("\r\x1b[K> ")
    for sentence in SENTENCES:
        terminal.type(f"{sentence}\n")
        began = time.monotonic()
        answer = terminal.read_until(r"\n> $")
        assert time.monotonic() - began < 1.0 + os.getloadavg()[0]
        shown, translation, prompt = answer.split("\r\n")
        assert (shown, prompt) == (sentence, "> ")
        assert bool(translation) == bool(sentence)
    terminal.type("\x04")  # end of input
    assert terminal.read_until() == "\r\n"
    assert terminal.exit_code() == 0


def test_an_interrupt_on_a_terminal_ends_the_command():
    terminal = Terminal([*QUICK_COMMAND, "--output_dir", "run"])
    terminal.read_until(r"> $")
    # CPython hears no signal between the prompt and its wait for a key.
    time.sleep(1.0)
    terminal.type("\x03")
    assert terminal.read_until().endswith("\r\nt2t decode: interrupted\r\n")
    assert terminal.exit_code() == 130


def test_a_line_at_the_prompt_can_be_edited_and_called_back():
    terminal = Terminal([*QUICK_COMMAND, "--output_dir", "run"])
    terminal.read_until(r"> $")
    left, up = "\x1b[D", "\x1b[A"
    terminal.type(f"the hrse{left}{left}{left}o\n")
    assert "THE HORSE\r\n" in terminal.read_until(r"HORSE\r\n> $")
    terminal.type(f"{up} sleeps\n")
    assert "THE HORSE SLEEPS\r\n" in terminal.read_until(r"SLEEPS\r\n> $")
    terminal.type("\x04")
    assert terminal.read_until().endswith("\r\n")
    assert terminal.exit_code() == 0


def test_pasted_lines_are_answered_one_by_one():
    terminal = Terminal([*QUICK_COMMAND, "--output_dir", "run"])
    terminal.read_until(r"> $")
    terminal.type("a horse\n\nno horse\n")
    shown = terminal.read_until(r"NO HORSE\r\n> $")
    # Between two prompts, the kernel would swallow it.
    terminal.type("\x04")
    terminal.read_until()
    assert shown.index("A HORSE\r\n") < shown.index("NO HORSE\r\n")
    assert terminal.exit_code() == 0


def test_the_prompt_is_on_the_terminal_and_not_in_a_file_of_results(tmp_path):
    target = tmp_path / "results"
    command = shlex.join([*QUICK_COMMAND, "--output_dir", "run"])
    shell = Terminal(["/bin/sh", "-c", f"{command} > {shlex.quote(str(target))}"])
    shell.read_until(r"> $")
    shell.type("the hrse\x1b[D\x1b[D\x1b[Do\n")
    shell.read_until(r"> $")
    shell.type("\x04")
    shell.read_until()
    assert shell.exit_code() == 0
    assert target.read_text() == "THE HORSE\n"


def test_a_slow_pipe_gets_its_answers_while_it_is_open():
    with subprocess.Popen(
        [*QUICK_COMMAND, "--output_dir", "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for sentence in SENTENCES:
            process.stdin.write(f"{sentence}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{sentence.upper()}\n"
        process.stdin.write(SENTENCES[0])  # without a line break
        rest, errors = process.communicate(timeout=SECONDS)
    assert rest == f"{SENTENCES[0].upper()}\n"
    assert process.returncode == 0
    assert "\x1b" not in errors
    assert "> " not in errors


CLEAR = "\x1b[2J"  # clears the screen
HARMFUL = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
]


class TerminalStream(io.TextIOWrapper):
    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self):
        return True

    def shown(self):
        return self.buffer.getvalue().decode()


def with_terminals(monkeypatch):
    """Put terminals in place of standard output and standard error."""
    streams = TerminalStream(), TerminalStream()
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
