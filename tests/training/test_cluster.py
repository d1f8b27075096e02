"""Devices and workers; no device is needed, and nothing connects to a worker."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training import cluster, training_state
from t2t_repro.training.cluster import (
    LostWorkerError,
    Workers,
    errors_of_other_workers,
    find_cluster,
    make_workers_strategy,
    number_of_workers,
)
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
def test_replicas_are_on_gpus_or_cpus(machine, source, gpus, replicas, strategy, calls):
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
def test_gpus_are_deterministic_on_request(machine, monkeypatch, gpus, given, is_asked):
    devices = machine(gpus)
    seeded = record(monkeypatch, keras.utils, "set_random_seed")
    cluster.make_repeatable(17, **given)
    assert seeded.call == {"seed": 17}
    assert devices.calls == ([("deterministic",)] if gpus and is_asked else [])


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


# The variables of `srun --nodes=2 --ntasks-per-node=1` on node9.
SLURM = {
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_NODELIST": "node[9-10]",
    "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
    "SLURMD_NODENAME": "node9",
}


@pytest.fixture
def environment(monkeypatch):
    """Set variables, without those of the machine that runs the tests."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "TF_CONFIG", "CUDA_VISIBLE")):
            monkeypatch.delenv(name)

    def replace(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return replace


def addresses(resolver):
    return resolver.cluster_spec().as_dict()


def test_a_cluster_of_one_worker_or_without_tf_config_is_no_cluster(environment):
    assert find_cluster("tf_config") is None
    task = {"type": "worker", "index": 0}
    config = {"cluster": {"worker": ["here:1"]}, "task": task}
    environment(TF_CONFIG=json.dumps(config))
    assert find_cluster("tf_config") is None


JOBS = {"chief": ["a:1"], "worker": ["b:2", "c:3"]}


def test_tf_config_names_the_workers_and_this_one(environment):
    config = {"cluster": JOBS, "task": {"type": "worker", "index": 1}}
    environment(TF_CONFIG=json.dumps(config))
    resolver = find_cluster("tf_config")
    assert addresses(resolver) == JOBS
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert number_of_workers(resolver) == 3


@pytest.mark.parametrize(
    "config",
    [
        "{cluster: here}",
        '{"cluster": 5}',
        '{"cluster": {"a": 5}}',
        json.dumps({"cluster": JOBS, "task": {"type": "worker", "index": "x"}}),
    ],
)
def test_tf_config_that_is_not_as_expected_is_refused(environment, config):
    environment(TF_CONFIG=config)
    with pytest.raises(UserError, match="received cluster=tf_config, but cannot read"):
        find_cluster("tf_config")


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"type": "worker"},
        {"type": "worker", "index": 2},
        {"type": "worker", "index": -1},
        {"type": "ps", "index": 0},
        {"type": "evaluator", "index": 0},
    ],
)
def test_a_process_that_is_not_in_the_cluster_is_refused(environment, task):
    environment(TF_CONFIG=json.dumps({"cluster": JOBS, "task": task}))
    with pytest.raises(UserError) as error:
        find_cluster("tf_config")
    received = f"the task type {task.get('type')} and the index {task.get('index')}"
    assert f"{received}, expected chief 0 to 0 or worker 0 to 1." in str(error.value)


@pytest.mark.parametrize("job", ["master", "ps", "evaluator"])
def test_jobs_that_do_not_train_are_refused(environment, job):
    config = {"cluster": {job: ["a:1"], "worker": ["b:2", "c:3"]}}
    config["task"] = {"type": "worker", "index": 0}
    environment(TF_CONFIG=json.dumps(config))
    with pytest.raises(UserError, match=f"jobs .*{job}.*, expected only chief and"):
        find_cluster("tf_config")


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.UnknownError(None, None, "Could not start gRPC server\nat line 5"),
        ValueError("Could not start gRPC server"),
    ],
)
def test_a_failed_connection_is_the_first_line_of_the_error(monkeypatch, error):
    def fail(resolver):
        raise error

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    with pytest.raises(UserError) as caught:
        make_workers_strategy(None, 0)
    message = "cannot connect with the other workers: Could not start gRPC server."
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("rank", "name", "number"), [("0", "node9", 1), ("1", "node10", 0)]
)
def test_a_slurm_worker_has_the_number_of_its_machine(environment, rank, name, number):
    """TensorFlow sorts the machines as texts; Slurm numbers the tasks its own way."""
    environment(**SLURM | {"SLURM_PROCID": rank, "SLURMD_NODENAME": name})
    resolver = find_cluster("slurm")
    assert addresses(resolver) == {"worker": ["node10:8888", "node9:8888"]}
    assert (resolver.task_type, resolver.task_id) == ("worker", number)
    assert addresses(resolver)["worker"][number].startswith(f"{name}:")
    assert resolver.rpc_layer == "grpc"


def test_several_slurm_tasks_on_a_machine_have_ports_of_their_own(environment):
    per_node = {"SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_STEP_NUM_TASKS": "4"}
    environment(**SLURM | per_node | {"SLURM_PROCID": "1", "SLURM_LOCALID": "1"})
    resolver = find_cluster("slurm")
    assert addresses(resolver)["worker"][resolver.task_id] == "node9:8889"


@pytest.mark.parametrize("gpus", [0, 3])
def test_a_slurm_worker_uses_the_gpus_given_by_slurm(environment, monkeypatch, gpus):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind] * gpus)
    environment(**SLURM, CUDA_VISIBLE_DEVICES="4,5,6")
    resolver = find_cluster("slurm")
    assert resolver.num_accelerators() == {"GPU": gpus}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,5,6"


def test_slurm_outside_a_job_step_is_refused(environment):
    with pytest.raises(UserError, match="SLURM_PROCID not found"):
        find_cluster("slurm")


@pytest.fixture
def second(monkeypatch):
    """Return worker 1 of 3, and the numbers that it adds to those of the others."""
    workers = Workers(tf.distribute.get_strategy())
    workers.count, workers.number = 3, 1
    workers.given, workers.others = [], 0

    def total(value):
        workers.given.append(value)
        return value + workers.others

    monkeypatch.setattr(workers, "total", total)
    return workers


def test_a_single_process_is_the_chief_and_waits_for_nobody():
    workers = Workers(tf.distribute.get_strategy())
    assert (workers.count, workers.number, workers.is_chief) == (1, 0, True)
    assert (workers.first_replica, workers.replicas_here) == (0, 1)
    assert workers.total(7) == 7
    assert workers.agree_to_stop(3, True, is_last=False)
    assert not workers.agree_to_stop(10, False, is_last=True)
    assert workers.when_stopping == "at the end of this step"
    workers.check_same_step(5)


@pytest.mark.parametrize(("stopping", "others"), [(False, 0), (True, 0), (False, 1)])
def test_workers_stop_together_at_a_multiple_of_ten_steps(second, stopping, others):
    second.others = others
    assert not second.agree_to_stop(19, stopping, is_last=False)
    assert second.given == []
    agreed = second.agree_to_stop(20, stopping, is_last=False)
    assert agreed == (stopping or others > 0)
    assert second.given == [int(stopping)]
    assert second.when_stopping == "at the next multiple of 10 steps"


def test_a_signal_of_another_worker_before_the_last_step_stops_all(second):
    second.others = 1
    assert second.agree_to_stop(19, False, is_last=True)
    assert second.given == [0]


def test_workers_that_resume_from_other_steps_are_refused(second):
    second.others = 2 * 40
    second.check_same_step(40)
    with pytest.raises(UserError, match="worker 1 resumes from step 0, other workers"):
        second.check_same_step(0)


@pytest.mark.parametrize(("number", "order"), [(0, ["block", 0]), (1, [0, "block"])])
def test_the_chief_runs_a_block_before_the_others(second, number, order):
    second.number = number
    with second.chief_first():
        second.given.append("block")
    assert second.given == order


def test_an_error_of_the_chief_does_not_keep_the_others_waiting(second):
    second.number = 0
    with pytest.raises(UserError, match="unreadable"), second.chief_first():
        raise UserError("unreadable")
    assert second.given == [0]


@pytest.mark.parametrize("kind", ["UnavailableError", "AbortedError"])
def test_a_lost_worker_is_a_message_with_an_exit_code_of_its_own(second, kind):
    error = getattr(tf.errors, kind)(None, None, "connection reset")
    message = "worker 1 of 3 cannot reach"
    with (
        pytest.raises(LostWorkerError, match=message) as caught,
        errors_of_other_workers(second),
    ):
        raise error
    assert caught.value.exit_code == 75


def test_the_same_error_of_a_single_process_is_not_explained():
    workers = Workers(tf.distribute.get_strategy())
    with pytest.raises(tf.errors.AbortedError), errors_of_other_workers(workers):
        raise tf.errors.AbortedError(None, None, "aborted")
