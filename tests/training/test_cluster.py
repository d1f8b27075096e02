"""The workers are those that TF_CONFIG or Slurm names; nothing connects to them."""

from __future__ import annotations

import json
import os

import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training.cluster import (
    find_cluster,
    make_workers_strategy,
    number_of_workers,
)

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
def test_a_slurm_worker_uses_the_gpus_that_slurm_gave_it(
    environment, monkeypatch, gpus
):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind] * gpus)
    environment(**SLURM, CUDA_VISIBLE_DEVICES="4,5,6")
    resolver = find_cluster("slurm")
    assert resolver.num_accelerators() == {"GPU": gpus}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,5,6"


def test_slurm_outside_a_job_step_is_refused(environment):
    with pytest.raises(UserError, match="SLURM_PROCID not found"):
        find_cluster("slurm")
