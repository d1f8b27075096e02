"""Devices, seeds and random states are set as requested; no device is needed."""

from __future__ import annotations

from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training import cluster, step, training_checkpoints
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


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_cpu_replicas_hide_the_gpus_and_divide_the_cpu(machine, gpus):
    devices = machine(gpus)
    expected = ("mirrored", ["CPU:0", "CPU:1", "CPU:2"])
    assert cluster.make_strategy(3) == expected
    assert devices.calls == [
        ("visible", [], "GPU"),
        ("divided", "the CPU", ["part"] * 3),
    ]


def test_one_cpu_replica_hides_the_gpus_and_leaves_the_cpu_whole(machine):
    devices = machine(0)
    assert cluster.make_strategy(1) == "default"
    assert devices.calls == [("visible", [], "GPU")]


@pytest.mark.parametrize(
    ("gpus", "strategy"), [(0, "default"), (1, "default"), (2, ("mirrored",))]
)
def test_several_gpus_share_the_batch_by_default(machine, gpus, strategy):
    devices = machine(gpus)
    assert cluster.make_strategy() == strategy
    assert devices.calls == []


@pytest.mark.parametrize("replicas", [0, 3])
def test_several_workers_share_one_strategy(machine, monkeypatch, replicas):
    devices = machine(2)
    found = record(monkeypatch, cluster, "find_cluster", "the cluster")
    made = record(monkeypatch, cluster, "make_workers_strategy", "connected")
    assert cluster.make_strategy(replicas, "slurm") == "connected"
    assert found.call == {"source": "slurm"}
    assert made.call == {"resolver": "the cluster", "cpu_replicas": replicas}
    assert len(devices.calls) == (2 if replicas else 0)


@pytest.mark.parametrize(
    ("replicas", "strategy"), [(0, "default"), (2, ("mirrored", ["CPU:0", "CPU:1"]))]
)
def test_a_local_strategy_ignores_other_workers(machine, replicas, strategy):
    devices = machine(1)
    assert cluster.make_local_strategy(replicas) == strategy
    assert devices.clusters.calls == []
    assert len(devices.calls) == replicas


def test_devices_that_are_in_use_cannot_be_divided(machine):
    machine(0)

    def refuse(*_):
        raise RuntimeError

    tf.config.set_visible_devices = refuse
    with pytest.raises(UserError, match="cannot make 3 CPU replicas"):
        cluster.make_strategy(3)


@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("given", [{}, {"deterministic": False}])
def test_operations_are_not_deterministic_by_default(machine, monkeypatch, gpus, given):
    devices = machine(gpus)
    seeded = record(monkeypatch, keras.utils, "set_random_seed")
    cluster.make_repeatable(17, **given)
    assert seeded.call == {"seed": 17}
    assert devices.calls == []


@pytest.mark.parametrize("gpus", [0, 1])
def test_gpus_are_made_deterministic_on_request(machine, monkeypatch, gpus):
    devices = machine(gpus)
    seeded = record(monkeypatch, keras.utils, "set_random_seed")
    cluster.make_repeatable(17, deterministic=True)
    assert seeded.call == {"seed": 17}
    assert devices.calls == ([("deterministic",)] if gpus else [])


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


def test_every_replica_gets_its_own_random_state(monkeypatch):
    states = {"0": [tf.Variable([5, 7]) for _ in range(3)]}
    states["1"] = [tf.Variable([2, 9]) for _ in range(3)]
    found = record(
        monkeypatch, training_checkpoints, "random_states", {n: n for n in states}
    )
    strategy = SimpleNamespace(experimental_local_results=states.__getitem__)
    training_checkpoints.seed_dropout_per_replica("model", strategy)
    assert found.call == {"model": "model"}
    assert [copy.numpy().tolist() for copy in states["0"]] == [[5, 7], [6, 7], [7, 7]]
    assert [copy.numpy().tolist() for copy in states["1"]] == [[2, 9], [3, 9], [4, 9]]


def test_random_states_continue_after_those_of_other_workers(monkeypatch):
    states = {"0": [tf.Variable([5, 7]) for _ in range(2)]}
    record(monkeypatch, training_checkpoints, "random_states", {"0": "0"})
    strategy = SimpleNamespace(experimental_local_results=states.__getitem__)
    training_checkpoints.seed_dropout_per_replica("model", strategy, first_replica=4)
    assert [copy.numpy().tolist() for copy in states["0"]] == [[9, 7], [10, 7]]
