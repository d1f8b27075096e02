"""The first updates of a run, and the trial of its largest batch."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.models.estimates import training_memory
from t2t_repro.runs.devices import memory_advice
from t2t_repro.training.step import StepOptions
from t2t_repro.training.training_batches import (
    FirstUpdates,
    OutOfMemoryError,
    _full_batch,
    largest_shape,
    timed_update,
    try_largest_batch,
)
from tests.support.tiny_training import losses_of, metrics_of, tiny_trainer, weights_of


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


def test_only_first_updates_of_a_shape_count_as_compilation(shards, tmp_path, caplog):
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


BASE = catalogue.hparams("transformer_tiny").parse("batch_size=640,max_length=64")


def try_with(trainer, step=None):
    """Try the batch of a later update."""
    iterations = trainer.optimizer.iterations
    seen = []

    def watched(batch):
        seen.append(int(iterations))
        return (step or trainer.train_step)(batch)

    try_largest_batch(
        watched,
        trainer.batches.data.plan,
        trainer.strategy,
        trainer.checkpoints.variables,
        advice=lambda: "Buy more.",
        prepare=lambda: iterations.assign(60),
    )
    assert (seen, int(iterations)) == ([60], 0)


def test_training_is_the_same_with_and_without_the_trial(tmp_path, shards, caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    trainers = []
    for name in ("tried", "plain"):
        trainer = tiny_trainer(tmp_path / name, shards, train_steps=6, dropout=0.3)
        if name == "tried":
            try_with(trainer)
        trainer.train()
        trainers.append(trainer)
    assert losses_of(tmp_path / "tried") == losses_of(tmp_path / "plain")
    tried, plain = (
        # The text is the window of metrics, which has seconds.
        [v.numpy() for v in trainer.checkpoints.variables if v.dtype != tf.string]
        for trainer in trainers
    )
    assert all(map(np.array_equal, tried, plain))
    assert any("8 rows of 8 tokens" in line for line in caplog.messages)


def test_a_lack_of_memory_is_a_message_and_changes_nothing(tmp_path, shards):
    trainer = tiny_trainer(tmp_path / "run", shards, train_steps=1)
    before = weights_of(trainer.model)

    def step(batch):
        trainer.train_step(batch)
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    with pytest.raises(OutOfMemoryError, match=r"8 rows of 8 tokens(.|\n)*Buy more"):
        try_with(trainer, step)
    after = weights_of(trainer.model)
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


def needed(rows, length=64):
    return training_memory(BASE, 900, 900, rows=rows, length=length).total


BETWEEN = int((needed(4) + needed(5)) / 2 / 0.9)  # 90 % of the memory count
PACKED = {"packed_length": 160}


@pytest.mark.parametrize(
    ("changes", "available", "needs", "end"),
    [
        # Room for four pairs and a half, and for two packed rows and a half.
        ({}, BETWEEN, needed(10), "; batch_size=256 fits."),
        (
            PACKED,
            int((needed(2, 160) + needed(3, 160)) / 2 / 0.9),
            needed(4, 160),
            "; batch_size=320 fits.",
        ),
        # Without a usable estimate, half the batch.
        ({}, None, needed(10), "; batch_size=320 fits."),
        ({}, 10**12, needed(10), "; batch_size=320 fits."),
        ({}, 1000, needed(10), "not even one row of max_length=64 tokens fits"),
        (PACKED, 1000, needed(4, 160), "one row of packed_length=160 tokens fits"),
    ],
)
def test_the_advice_is_the_largest_batch_that_fits(changes, available, needs, end):
    text = memory_advice(BASE.replace(**changes), (900, 900), available)
    assert end in text
    assert f"batch_size=640 needs {needs / 1e9:.1f} GB" in text


def test_the_advice_counts_the_sum_of_gradients():
    sizes = (900_000, 900_000)  # several tenths of a GB
    one = training_memory(BASE, *sizes, rows=10, length=64)
    text = memory_advice(BASE, sizes, None, micro_batches=3)
    needs = (one.total + one.weights) / 1e9
    assert f"batch_size=640 needs {needs:.1f} GB" in text


def test_a_full_batch_of_packed_rows_fills_both_sides():
    plan = BatchPlan((9,), (4,), packed_length=16, packed_source_length=11)
    batch = _full_batch(4, 16, plan)
    sides = batch["inputs"].numpy(), batch["targets"].numpy()
    assert [ids.shape for ids in sides] == [(4, 11), (4, 16)]
    assert all(ids.all() for ids in sides)


@pytest.mark.parametrize(
    ("batch_size", "expected"), [(512, (2, 256)), (500, (10, 50)), (100, (1, 256))]
)
def test_the_largest_batch_is_the_one_with_the_most_tokens(batch_size, expected):
    hparams = BASE.replace(
        batch_size=batch_size,
        max_length=256,
        min_length_bucket=8,
        length_bucket_step=1.1,
    )
    assert largest_shape(BatchPlan.for_training(hparams)) == expected
