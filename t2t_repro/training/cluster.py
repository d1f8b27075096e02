"""Find the machines of a training run, and make the strategy of several."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import (
    CollectiveAllReduceExtended,
)

from t2t_repro.errors import UserError

JOBS = ("chief", "worker")
SLURM_PORT = 8888  # of the first task on a machine; the next one has 8889
LARGEST_SLURM_NODE = 1024  # tasks
# Errors of TensorFlow's resolvers: the last two if a part of the JSON is of another
# type than expected.
_UNREADABLE = (
    ValueError,
    RuntimeError,
    KeyError,
    OSError,
    TypeError,
    AttributeError,
)


def find_cluster(
    source: str,
) -> tf.distribute.cluster_resolver.ClusterResolver | None:
    """Return TensorFlow's description of the workers, or None if there is only one.

    Args:
        source: "tf_config" reads the environment variable `TF_CONFIG`; "slurm" reads
            the variables of a Slurm job step.

    Raises:
        UserError: If the description cannot be read, or does not have this process as
            one of its workers.
    """
    try:
        resolver = (
            _slurm_cluster()
            if source == "slurm"
            else tf.distribute.cluster_resolver.TFConfigClusterResolver()
        )
        jobs = resolver.cluster_spec().as_dict()
        if sum(len(tasks) for tasks in jobs.values()) < 2:
            return None
        _check_task(jobs, resolver.task_type, resolver.task_id)
        return resolver
    except _UNREADABLE as error:
        raise UserError(
            f"received cluster={source}, but cannot read the workers of this "
            f"training: {error}."
        ) from error


def _check_task(
    jobs: dict[str, list[str]], task_type: str | None, index: int | None
) -> None:
    """Refuse a cluster that has other jobs than workers, or not this process.

    Raises:
        UserError: If there are other jobs, or no task of this type and index.
    """
    if not set(jobs) <= set(JOBS):
        raise UserError(
            f"received a cluster with the jobs {', '.join(jobs)}, expected only "
            f"{' and '.join(JOBS)}: every process trains."
        )
    known = jobs.get(task_type or "", [])
    if index is None or not 0 <= index < len(known):
        tasks = (f"{job} 0 to {len(jobs[job]) - 1}" for job in jobs)
        raise UserError(
            f"received a cluster in which this process has the task type {task_type} "
            f"and the index {index}, expected {' or '.join(tasks)}."
        )


def _slurm_cluster() -> tf.distribute.cluster_resolver.ClusterResolver:
    """Read the workers of a Slurm job step, each with the GPUs that Slurm gave it.

    TensorFlow's `SlurmClusterResolver` (2.21) sorts the machines by name, so "node10"
    comes before "node9", but numbers this worker in Slurm's order. So this function
    looks the worker up by the name of its machine. The resolver also fails without
    `nvidia-smi`, and chooses GPUs again; it is not asked to.
    """
    resolvers = tf.distribute.cluster_resolver
    # One "GPU" per task, which is not used: they must not be fewer than the tasks.
    found = resolvers.SlurmClusterResolver(
        port_base=SLURM_PORT,
        gpus_per_node=LARGEST_SLURM_NODE,
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = found.cluster_spec()
    number = found.task_id
    if "SLURMD_NODENAME" in os.environ:
        port = SLURM_PORT + int(os.environ.get("SLURM_LOCALID", "0"))
        address = f"{os.environ['SLURMD_NODENAME']}:{port}"
        number = cluster.job_tasks("worker").index(address)
    gpus = len(tf.config.get_visible_devices("GPU"))
    return resolvers.SimpleClusterResolver(
        cluster,
        task_type="worker",
        task_id=number,
        num_accelerators={"GPU": gpus},
        rpc_layer="grpc",
    )


def number_of_workers(
    resolver: tf.distribute.cluster_resolver.ClusterResolver,
) -> int:
    """Count the workers of a cluster, the chief included."""
    jobs = resolver.cluster_spec().as_dict()
    return sum(len(jobs.get(job, [])) for job in JOBS)


def make_workers_strategy(
    resolver: tf.distribute.cluster_resolver.ClusterResolver, cpu_replicas: int
) -> tf.distribute.MultiWorkerMirroredStrategy:
    """Connect with the other workers, and return the strategy of all of them.

    Args:
        resolver: Description of the workers.
        cpu_replicas: Number of replicas on this worker's CPU; 0 = one per GPU.

    Raises:
        UserError: If TensorFlow has already started, or cannot connect.
    """
    try:
        with _cpu_replicas(cpu_replicas):
            return tf.distribute.MultiWorkerMirroredStrategy(resolver)
    except RuntimeError as error:
        raise UserError(
            "cannot connect with the other workers: TensorFlow has already started in "
            "this process. Start a new one."
        ) from error
    except (ValueError, tf.errors.OpError) as error:
        message = str(error).partition("\n")[0]
        raise UserError(f"cannot connect with the other workers: {message}.") from error


@contextmanager
def _cpu_replicas(count: int) -> Iterator[None]:
    """Give new strategies several replicas per worker on the CPU.

    TensorFlow 2.21 has no option for this: on a CPU, a worker has one replica.
    """
    original = CollectiveAllReduceExtended._initialize_local_devices

    def cpu_devices(
        strategy: object, resolver: object, worker: str
    ) -> tuple[tuple[str, ...], str]:
        return tuple(f"{worker}/device:CPU:{n}" for n in range(count)), "CPU"

    if count > 1:
        CollectiveAllReduceExtended._initialize_local_devices = cpu_devices
    try:
        yield
    finally:
        CollectiveAllReduceExtended._initialize_local_devices = original
