"""Devices, seeds and random states are set as requested; no device is needed."""

from __future__ import annotations

from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training import cluster, step, training_state
from tests.support.recorder import record


class Devices:
    """The devices of a machine, and what is asked of them."""

    def __init__(self, monkeypatch, gpus):
        self.calls = []
        visible = {"GPU": [f"GPU:{n}" for n in range(gpus)], "CPU": ["CPU:0"]}
        config = SimpleNamespace(
            get_visible_devices=visible.__getitem__,
            list_physical_devices={"CPU": ["the CPU", "another"]}.__getitem__,
            set_visible_devices=self._recorded("visible"),
            set_logical_device_configuration=self._recorded("divided"),
            LogicalDeviceConfiguration=lambda: "part",
            experimental=SimpleNamespace(
                enable_op_determinism=self._recorded("deterministic")
            ),
        )
        distribute = SimpleNamespace(
            MirroredStrategy=lambda *devices: ("mirrored", *devices),
            get_strategy=lambda: "default",
        )
        self.clusters = record(monkeypatch, cluster, "find_cluster")
        monkeypatch.setattr(tf, "config", config)
        monkeypatch.setattr(tf, "distribute", distribute)

    def _recorded(self, name):
        return lambda *values: self.calls.append((name, *values))


@pytest.fixture
def machine(monkeypatch):
    return lambda gpus: Devices(monkeypatch, gpus)


HIDDEN = ("visible", [], "GPU")
HALVES = ("mirrored", ["CPU:0", "CPU:1"])


@pytest.mark.parametrize(
    ("gpus", "replicas", "strategy", "calls"),
    [
        (0, 0, "default", []),
        (1, 0, "default", []),
        (2, 0, ("mirrored",), []),
        # Replicas on the CPU hide the GPUs, and several divide it.
        (1, 1, "default", [HIDDEN]),
        (0, 2, HALVES, [HIDDEN, ("divided", "the CPU", ["part"] * 2)]),
        (2, 2, HALVES, [HIDDEN, ("divided", "the CPU", ["part"] * 2)]),
    ],
)
@pytest.mark.parametrize("source", ["tf_config", None])
def test_the_replicas_are_those_of_the_gpus_or_of_the_cpu(
    machine, source, gpus, replicas, strategy, calls
):
    devices = machine(gpus)
    assert cluster.make_strategy(replicas, source) == strategy
    assert devices.calls == calls
    # Without a source, other workers are ignored.
    assert devices.clusters.calls == ([{"source": source}] if source else [])


@pytest.mark.parametrize("replicas", [0, 3])
def test_several_workers_share_one_strategy(machine, monkeypatch, replicas):
    devices = machine(2)
    found = record(monkeypatch, cluster, "find_cluster", "the cluster")
    made = record(monkeypatch, cluster, "make_workers_strategy", "connected")
    assert cluster.make_strategy(replicas, "slurm") == "connected"
    assert found.call == {"source": "slurm"}
    assert made.call == {"resolver": "the cluster", "cpu_replicas": replicas}
    assert len(devices.calls) == (2 if replicas else 0)


def test_devices_that_are_in_use_cannot_be_divided():
    tf.constant(0)
    with pytest.raises(UserError, match="cannot make 3 CPU replicas"):
        cluster.make_strategy(3)


@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize(
    ("given", "is_asked"),
    [({}, False), ({"deterministic": False}, False), ({"deterministic": True}, True)],
)
def test_gpus_are_made_deterministic_on_request_only(
    machine, monkeypatch, gpus, given, is_asked
):
    devices = machine(gpus)
    seeded = record(monkeypatch, keras.utils, "set_random_seed")
    cluster.make_repeatable(17, **given)
    assert seeded.call == {"seed": 17}
    assert devices.calls == ([("deterministic",)] if gpus and is_asked else [])


@pytest.mark.parametrize(
    ("gpus", "replicas", "is_wise"),
    [(0, 1, True), (0, 2, False), (1, 1, True), (2, 2, True)],
)
def test_xla_is_wise_unless_replicas_share_a_cpu(machine, gpus, replicas, is_wise):
    machine(gpus)
    strategy = SimpleNamespace(num_replicas_in_sync=replicas)
    assert step.should_use_xla(strategy) is is_wise


@pytest.mark.parametrize(
    ("gpus", "fast", "dtype", "expected"),
    [
        (0, True, "bfloat16", False),
        (0, True, "float32", True),
        (0, True, "float16", True),
        (0, False, "bfloat16", True),
        (1, True, "bfloat16", True),
    ],
)
def test_products_are_compiled_unless_the_processor_multiplies_their_dtype(
    machine, monkeypatch, gpus, fast, dtype, expected
):
    machine(gpus)
    monkeypatch.setattr(step, "multiplies_bfloat16", lambda: fast)
    assert step.compiles_products("auto", dtype) is expected
    for xla, products in (("on", True), ("fusible", False), ("off", True)):
        assert step.compiles_products(xla, dtype) is products


@pytest.mark.parametrize("first", [0, 4])
def test_every_replica_gets_its_own_random_state(monkeypatch, first):
    """Those of a worker continue after those of earlier workers."""
    states = {"0": [tf.Variable([5, 7]) for _ in range(3)]}
    states["1"] = [tf.Variable([2, 9]) for _ in range(3)]
    names = {name: name for name in states}
    monkeypatch.setattr(training_state, "random_states", lambda model: names)
    strategy = SimpleNamespace(experimental_local_results=states.__getitem__)
    training_state.seed_dropout_per_replica("model", strategy, first)
    for name, (start, other) in {"0": (5, 7), "1": (2, 9)}.items():
        found = [copy.numpy().tolist() for copy in states[name]]
        assert found == [[start + first + n, other] for n in range(3)]
