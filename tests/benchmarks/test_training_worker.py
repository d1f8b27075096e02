import io
import itertools
import json
import time

import pytest

from benchmarks.training.worker import serve


def answers(monkeypatch, capsys, requests: list[str], **functions) -> list[dict]:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(requests) + "\n"))
    serve(**functions)
    lines = capsys.readouterr().out.splitlines()
    return [json.loads(line.removeprefix("ANSWER ")) for line in lines]


def slow_updates():
    for number in itertools.count():
        time.sleep(0.02)
        yield (1, 2, 3, 4, number)


def test_first_updates_are_timed_apart_from_training(monkeypatch, capsys):
    def warm_up() -> int:
        time.sleep(0.05)
        return 6

    first, training = answers(
        monkeypatch,
        capsys,
        ["warm_up", "0.01"],
        warm_up=warm_up,
        updates=slow_updates(),
    )
    assert first["shapes"] == 6
    assert first["seconds"] >= 0.05
    assert training["batches"] == [[1, 2, 3, 4, 0]]
    assert training["gigabytes"] > 0


def test_a_turn_ends_with_the_update_that_exceeds_its_time(monkeypatch, capsys):
    first, second = answers(
        monkeypatch,
        capsys,
        ["0.05", "0.05"],
        warm_up=lambda: 1,
        updates=slow_updates(),
    )
    for turn in (first, second):
        assert turn["seconds"] >= max(0.05, 0.02 * len(turn["batches"]))
    numbers = [batch[4] for turn in (first, second) for batch in turn["batches"]]
    assert numbers == list(range(len(numbers)))


def test_an_engine_may_answer_other_requests(monkeypatch, capsys):
    (answer,) = answers(
        monkeypatch,
        capsys,
        ["matmul"],
        warm_up=lambda: 1,
        updates=slow_updates(),
        others={"matmul": lambda: {"rate": 3.0}},
    )
    assert answer["rate"] == 3.0


def test_an_unknown_request_is_refused(monkeypatch, capsys):
    with pytest.raises(ValueError, match="faster"):
        answers(
            monkeypatch,
            capsys,
            ["faster"],
            warm_up=lambda: 1,
            updates=slow_updates(),
        )
