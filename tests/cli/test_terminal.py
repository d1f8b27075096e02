"""`t2t decode` in its own process, on a terminal and in a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time

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
