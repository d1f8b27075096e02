import sys
import time

import pytest

from benchmarks.child import children

ECHO = """
import sys
print("a line of a library")
for line in sys.stdin:
    print(f'ANSWER {{"request": "{line.strip()}"}}', flush=True)
"""
COUNTER = """
import sys, threading, time
milliseconds = 0
def count():
    global milliseconds
    while True:
        time.sleep(0.001)
        milliseconds += 1
threading.Thread(target=count, daemon=True).start()
for line in sys.stdin:
    print(f'ANSWER {{"worked": {milliseconds}}}', flush=True)
"""


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def test_every_request_gets_its_answer_from_the_named_process():
    with children({"a": python(ECHO), "b": python(ECHO)}) as engines:
        answers = [engines[name].ask(f"{name}{i}") for i in range(2) for name in "ab"]
    assert [answer["request"] for answer in answers] == ["a0", "b0", "a1", "b1"]


def test_a_process_rests_between_its_answers():
    with children({"counter": python(COUNTER)}) as engines:
        before = engines["counter"].ask("go")["worked"]
        time.sleep(0.5)
        assert engines["counter"].ask("go")["worked"] - before < 250


def test_the_errors_of_a_process_that_ends_are_shown():
    command = python("raise SystemExit('no such model')")
    with (
        children({"broken": command}) as engines,
        pytest.raises(RuntimeError, match="no such model"),
    ):
        engines["broken"].ask("go")


def test_no_process_is_left_even_after_an_error():
    processes = []

    def fail():
        with children({"a": python(ECHO)}) as engines:
            processes.append(engines["a"]._process)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert processes[0].poll() is not None
