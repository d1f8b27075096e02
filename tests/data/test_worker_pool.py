from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from t2t_repro.data.encoding import ordered_map
from t2t_repro.errors import UserError
from tests.support.waiting import until


def square(number: int) -> tuple[int, int, bool]:
    return number * number, os.getpid(), "tensorflow" in sys.modules


@pytest.mark.parametrize("count", [0, 1, 10])
def test_few_items_stay_in_this_process(count):
    found = [*ordered_map(square, range(count), 2)]
    assert [result for result, *_ in found] == [n * n for n in range(count)]
    assert {pid for _, pid, _ in found} <= {os.getpid()}


def test_many_items_keep_their_order_and_workers_do_not_import_tensorflow():
    import tensorflow  # noqa: F401  # here, and not in the workers

    found = [*ordered_map(square, range(60), 2)]
    assert [result for result, *_ in found] == [n * n for n in range(60)]
    workers = [(pid, loaded) for _, pid, loaded in found if pid != os.getpid()]
    assert len(workers) == 50
    assert not any(loaded for _, loaded in workers)


def test_items_are_not_read_far_ahead():
    read = []

    def items():
        for number in range(1_000):
            read.append(number)
            yield number

    results = ordered_map(square, items(), 2)
    for _ in range(20):
        next(results)
    assert len(read) < 40
    results.close()


def end(number: int) -> int:
    if number == 30:
        os._exit(3)
    return number


def test_a_worker_that_ends_is_reported():
    with pytest.raises(UserError, match="one of 2 worker processes ended"):
        list(ordered_map(end, range(60), 2))


def broken(number: int) -> int:
    raise ValueError(f"item {number}")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_error_of_the_function_is_raised(num_workers):
    with pytest.raises(ValueError, match="item 0"):
        list(ordered_map(broken, range(60), num_workers))


def sleep_in_worker(number: int) -> int:
    """Sleep longer than the test, in a worker, after saying so."""
    if number >= 10:
        Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(600)
    return number


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_workers_end_when_their_parent_is_killed(tmp_path):
    program = (
        "from t2t_repro.data.encoding import ordered_map\n"
        "from tests.data.test_worker_pool import sleep_in_worker\n"
        "list(ordered_map(sleep_in_worker, range(99), 2))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    try:
        until(lambda: parent.poll() is not None or len([*tmp_path.iterdir()]) == 2)
        workers = [int(path.name) for path in tmp_path.iterdir()]
    finally:
        parent.kill()
        parent.wait()
    assert len(workers) == 2
    try:
        until(lambda: not any(map(is_running, workers)))
    finally:
        for pid in filter(is_running, workers):
            os.kill(pid, signal.SIGKILL)
