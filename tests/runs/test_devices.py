"""XLA compiles what the steps of a run pay back; the largest batch is tried first."""

from __future__ import annotations

import logging
import types
from unittest import mock

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan, UpdateSize
from t2t_repro.runs import DecodeHParams, TrainSettings, devices
from t2t_repro.runs.devices import memory_advice
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.training.step import StepOptions
from tests.support.recorder import record

# Five batch shapes; an update has 2,048 * 128 values.
TINY = catalogue.hparams("transformer_tiny").resolved()
FEWEST = 5 * devices.VALUES_PER_COMPILED_SHAPE // (2048 * 128)
FOUND = {}  # the run to resume
ONE_REPLICA = types.SimpleNamespace(num_replicas_in_sync=1)


def settings(folder="new", steps=FEWEST, xla="auto"):
    return TrainSettings(
        output_dir=str(folder), hparams_set="transformer_tiny", train_steps=steps
    ).replace(xla=xla)


def decided(*, hparams=TINY, strategy=ONE_REPLICA, **changes):
    before = FOUND.get("before")
    given = settings(**changes)
    config = TrainingConfig(given, None, hparams, DecodeHParams(), before, before)
    return devices.choose_xla(config, strategy)


@pytest.fixture
def recorded(monkeypatch):
    """Return a function that lets the folder hold a run."""

    def record(**training):
        run = types.SimpleNamespace(training=training)
        monkeypatch.setitem(FOUND, "before", run)

    return record


@pytest.fixture(autouse=True)
def logged(caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    return caplog


def test_xla_compiles_from_the_number_of_steps_that_pays_back_every_shape(logged):
    assert FEWEST == 320
    assert decided(steps=FEWEST) == "on"
    assert logged.messages == []
    assert decided(steps=FEWEST - 1) == "off"
    assert logged.messages == [
        "XLA: off; 319 steps would not pay back compiling 5 batch shapes (xla=on "
        "compiles)"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": 256},
        {"batch_size": 4096},
        {"update_tokens": 4096},
        {"packed_length": 64},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_larger_updates_and_fewer_shapes_pay_back_sooner(changes):
    assert decided(steps=FEWEST // 2, hparams=TINY.replace(**changes)) == "on"


@pytest.mark.parametrize("xla", ["on", "fusible", "off"])
@pytest.mark.parametrize("steps", [1, 100 * FEWEST])
def test_an_explicit_choice_wins(logged, xla, steps):
    assert decided(steps=steps, xla=xla) == xla
    assert logged.messages == []


@pytest.mark.parametrize(
    ("dtype", "fast", "gpus", "chosen"),
    [
        ("bfloat16", True, [], "fusible"),
        ("float32", True, [], "on"),
        ("float16", True, [], "on"),
        ("bfloat16", False, [], "on"),
        ("bfloat16", True, ["a GPU"], "on"),
    ],
)
def test_products_of_bfloat16_are_left_to_a_processor_that_has_them(
    monkeypatch, dtype, fast, gpus, chosen
):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: gpus)
    monkeypatch.setattr(devices, "multiplies_bfloat16", lambda: fast)
    assert decided(hparams=TINY.replace(activation_dtype=dtype)) == chosen


@pytest.mark.parametrize("replicas", [1, 2])
def test_gpus_compile_short_runs_too(monkeypatch, replicas):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: ["GPU"] * replicas)
    strategy = types.SimpleNamespace(num_replicas_in_sync=replicas)
    assert decided(steps=1, strategy=strategy) == "on"


@pytest.mark.parametrize("steps", [1, 100 * FEWEST])
def test_replicas_that_share_a_cpu_never_compile(logged, steps):
    replicas = types.SimpleNamespace(num_replicas_in_sync=2)
    assert decided(steps=steps, strategy=replicas) == "off"
    assert logged.messages == []


@pytest.mark.parametrize("steps", [11, 100 * FEWEST])
@pytest.mark.parametrize("xla", ["on", "fusible", "off"])
def test_a_resumed_run_keeps_its_choice_with_fewer_and_more_steps(recorded, xla, steps):
    recorded(xla=xla, train_steps=100)
    assert decided(steps=steps) == xla
    assert decided(steps=steps, xla="off") == "off"
    assert decided(steps=steps, xla="on") == "on"


@pytest.mark.parametrize("training", [{}, {"xla": "auto"}])
def test_a_run_without_a_choice_is_chosen_for_as_a_new_one(recorded, training):
    recorded(**training)
    assert decided(steps=FEWEST - 1) == "off"
    assert decided(steps=FEWEST) == "on"


@pytest.mark.parametrize(
    ("xla", "compiled", "products"),
    [("on", True, True), ("fusible", True, False), ("off", False, True)],
)
def test_options_of_the_step_are_hparams(xla, compiled, products):
    values = {
        "label_smoothing": 0.17,
        "clip_grad_norm": 3.5,
        "rdrop_weight": 2.5,
        "rdrop_after_steps": 60,
    }
    size = types.SimpleNamespace(micro_batches=3)
    options = devices.step_options(TINY.replace(**values), size, xla)
    how = {"jit_compile": compiled, "jit_products": products}
    assert options == StepOptions(**values, **how, micro_batches=3)


SIZES = (700_000, 900_000)  # so the sum of gradients has several tenths of a GB


def test_the_trial_of_the_largest_batch_makes_both_passes_and_gives_advice(monkeypatch):
    tried = record(monkeypatch, devices, "try_largest_batch")
    monkeypatch.setattr(devices, "device_memory", lambda: 5_000_000_000)
    hparams = TINY.replace(
        batch_size=640, update_tokens=1920, rdrop_weight=1.0, rdrop_after_steps=30
    )
    trainer = mock.MagicMock(strategy=ONE_REPLICA)
    plan = trainer.batches.data.plan = BatchPlan.for_training(hparams, 3)
    tokenizers = tuple(
        types.SimpleNamespace(vocab_size=size, same_ids=lambda other: False)
        for size in SIZES
    )
    data = types.SimpleNamespace(tokenizers=lambda: tokenizers)
    devices.check_memory(hparams, trainer, data, UpdateSize.of(hparams, 1))
    assert tried.call["train_step"] is trainer.train_step
    tried.call["prepare"]()
    trainer.optimizer.iterations.assign.assert_called_once_with(30)
    # The longest shape is compiled, and its advice is about three micro-batches.
    longest = max(length for _, length in plan.shapes)
    trainer.first_updates.add.assert_called_once_with(longest)
    untied = hparams.replace(shared_embedding_and_softmax_weights=False)
    expected = memory_advice(untied, SIZES, 5_000_000_000, micro_batches=3)
    assert tried.call["advice"]() == expected
    assert expected != memory_advice(untied, SIZES, 5_000_000_000)
