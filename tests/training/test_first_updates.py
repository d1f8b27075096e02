from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.training.step import StepOptions
from t2t_repro.training.training_batches import FirstUpdates, timed_update
from tests.support.tiny_training import metrics_of, tiny_trainer


def strategy(replicas):
    """Return a strategy whose distributed values are lists."""
    return SimpleNamespace(
        num_replicas_in_sync=replicas,
        experimental_local_results=lambda value: tuple([value] * replicas),
    )


def batch(rows, length):
    return {
        "inputs": np.ones([rows, length + 9], np.int32),
        "targets": np.ones([rows, length], np.int32),
    }


@pytest.mark.parametrize("replicas", [1, 3])
def test_every_shape_is_compiled_once_and_counted(replicas):
    firsts = FirstUpdates(strategy(replicas), 6, jit_compile=True)
    found = [firsts.begin(batch(*s)) for s in ((8, 5), (8, 5), (4, 9), (8, 5), (4, 9))]
    assert found == [
        f"compiling shape 1 of 6: {8 * replicas} x 5 (rows x length)",
        None,
        f"compiling shape 2 of 6: {4 * replicas} x 9 (rows x length)",
        None,
        None,
    ]


def test_a_step_that_is_not_compiled_is_traced_once():
    firsts = FirstUpdates(strategy(1), 6, jit_compile=False)
    found = [firsts.begin(batch(*shape)) for shape in ((8, 5), (4, 9), (8, 5))]
    assert found == ["tracing the training step", None, None]


def test_a_shape_that_was_tried_before_is_not_compiled_again():
    firsts = FirstUpdates(strategy(1), 2, jit_compile=True)
    firsts.add(9)
    assert firsts.begin(batch(4, 9)) is None
    assert firsts.begin(batch(8, 5)).startswith("compiling shape 2 of 2: 8 x 5")


def test_the_duration_of_an_update_is_its_own_to_its_end(monkeypatch):
    clock, order = [10.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def wait():
        """Wait for the updates before this one."""
        order.append("waited")
        clock[0] += 100.0

    def step(batch):
        order.append(batch)
        clock[0] += 2.5
        return {"loss": 3.0}

    iterations = SimpleNamespace(numpy=wait)
    assert timed_update(step, "batch", iterations) == ({"loss": 3.0}, 2.5)
    assert order == ["waited", "batch"]


def test_only_the_first_update_of_a_shape_counts_as_compilation(
    shards, tmp_path, caplog
):
    caplog.set_level("INFO", "t2t_repro")
    trainer = tiny_trainer(
        tmp_path,
        shards,
        train_steps=8,
        plan=BatchPlan((4, 8), (8, 8)),
        step_options=StepOptions(0.1, jit_compile=True),
        show_progress=True,
    )
    trainer.train()
    # XLA compiled the step for no shape that was not announced.
    lines = [line for line in caplog.messages if line.startswith("compiling")]
    steps = metrics_of(tmp_path)
    firsts = [line for line in steps if "compile_seconds" in line]
    assert len(firsts) == len(lines) == 2
    assert all("steps_per_second" not in line for line in firsts)
    others = [line for line in steps if line not in firsts]
    assert all("steps_per_second" in line for line in others)
    assert [line.partition(":")[0] for line in lines] == [
        "compiling shape 1 of 2",
        "compiling shape 2 of 2",
    ]
    assert trainer.train_step.experimental_get_tracing_count() == 1
