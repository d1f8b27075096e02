"""Choose the devices and machines of a training run, and coordinate them."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import keras
import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import (
    CollectiveAllReduceExtended,
)

from t2t_repro.errors import UserError

JOBS = ("chief", "worker")
SLURM_PORT = 8888  # port of the first task on a machine; the next has 8889
LARGEST_SLURM_NODE = 1024  # tasks per machine
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
    """Refuse a cluster with jobs other than workers, or without this process.

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
    comes before "node9", but numbers this worker in Slurm's order. This function
    therefore looks up the worker by the name of its machine. Nor does it let the
    resolver choose GPUs, which would fail without `nvidia-smi`.
    """
    resolvers = tf.distribute.cluster_resolver
    # One unused "GPU" per task: there must be at least as many as tasks.
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
def _cpu_replicas(count: int) -> Generator[None]:
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


def make_strategy(
    cpu_replicas: int = 0, cluster: str | None = "tf_config"
) -> tf.distribute.Strategy:
    """Choose the devices of the replicas; call this before TensorFlow starts.

    Args:
        cpu_replicas: Number of replicas on this CPU, to try data parallelism without
            GPUs. 0 = one on every visible GPU, or one on the CPU.
        cluster: See `find_cluster`; None = ignore other workers. With several workers,
            this function waits until all of them have called it.

    Returns:
        `MultiWorkerMirroredStrategy` for several workers, `MirroredStrategy` for
        several replicas in this process, the default strategy for one.

    Raises:
        UserError: If TensorFlow has already started, so that its CPU device cannot be
            divided any more, or the cluster is not described correctly.
    """
    if cpu_replicas:
        _make_cpu_replicas(cpu_replicas)
    workers = find_cluster(cluster) if cluster else None
    if workers is not None:
        return make_workers_strategy(workers, cpu_replicas)
    if cpu_replicas > 1:
        cpus = [f"CPU:{number}" for number in range(cpu_replicas)]
        return tf.distribute.MirroredStrategy(cpus)
    if len(tf.config.get_visible_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def _make_cpu_replicas(count: int) -> None:
    """Hide the GPUs, and divide the CPU into `count` devices."""
    (cpu, *_) = tf.config.list_physical_devices("CPU")
    try:
        tf.config.set_visible_devices([], "GPU")
        if count > 1:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * count
            )
    except RuntimeError as error:
        raise UserError(
            f"cannot make {count} CPU replicas: TensorFlow has already "
            "started in this process. Start a new one."
        ) from error


def make_repeatable(seed: int, *, deterministic: bool = False) -> None:
    """Make the same program compute the same numbers again on this machine.

    On a CPU, it always does. The data and its order are the same on every
    device.

    Args:
        seed: Seed of initial weights and dropout, from 0 to 2^32 - 1.
        deterministic: Whether this also holds for GPUs. TensorFlow then uses slower
            operations, for the rest of the process, and raises `UnimplementedError`
            where it has none.
    """
    keras.utils.set_random_seed(seed)
    # Without this, a GPU computes some sums, such as the embedding's gradient, in any
    # order. The order on a CPU is fixed.
    if deterministic and tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


# With several workers, a signal stops training at the next multiple of this step, or at
# the last step. The workers receive signals during different updates, and agreeing
# takes time.
STEPS_BETWEEN_AGREEMENTS = 10


class LostWorkerError(UserError):
    """Error raised when another worker has stopped."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: start the same command again


class Workers:
    """The workers of a strategy; a strategy of one process has one, the chief.

    Args:
        strategy: The strategy of the replicas.

    Attributes:
        count: Number of workers.
        number: Number of this worker, from 0; the chief is 0.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._strategy = strategy
        self.count, self.number = 1, 0
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            resolver = strategy.cluster_resolver
            self.count = number_of_workers(resolver)
            if resolver.task_type == "worker":
                chiefs = resolver.cluster_spec().as_dict().get("chief", [])
                self.number = resolver.task_id + len(chiefs)
        self._sum = tf.function(
            self._sum_over_replicas, input_signature=[tf.TensorSpec([], tf.int64)]
        )

    @property
    def is_chief(self) -> bool:
        """Whether this worker writes checkpoints and metrics."""
        return self.number == 0

    @property
    def replicas_here(self) -> int:
        """Number of replicas of this worker."""
        return self._strategy.num_replicas_in_sync // self.count

    @property
    def first_replica(self) -> int:
        """Number of this worker's first replica among all replicas."""
        return self.number * self.replicas_here

    def total(self, value: int) -> int:
        """Sum a number over all workers; wait until each has called this."""
        if self.count == 1:
            return value
        number = tf.constant(value, tf.int64)
        return int(self._sum(number).numpy()) // self.replicas_here

    def wait_for_all(self) -> None:
        """Wait until every worker has called this."""
        self.total(0)

    @property
    def when_stopping(self) -> str:
        """The time at which a signal stops training, for messages."""
        if self.count == 1:
            return "at the end of this step"
        return f"at the next multiple of {STEPS_BETWEEN_AGREEMENTS} steps"

    def agree_to_stop(self, step: int, stopping: bool, *, is_last: bool) -> bool:
        """Return whether any worker received a signal to stop, the same on all.

        Args:
            step: Number of completed updates.
            stopping: Whether this worker received one.
            is_last: Whether this is the last step of the training run.
        """
        if self.count == 1:
            return stopping
        if step % STEPS_BETWEEN_AGREEMENTS and not is_last:
            return False
        return self.total(int(stopping)) > 0

    @contextmanager
    def chief_first(self) -> Generator[None]:
        """Let the chief run the block first, and the other workers afterwards.

        If the chief raises an error, the others do not wait forever: they run the
        block, too, and usually meet the same error.
        """
        if not self.is_chief:
            self.wait_for_all()
        try:
            yield
        finally:
            if self.is_chief:
                self.wait_for_all()

    def check_same_step(self, step: int) -> None:
        """Refuse to train if the workers resume from different steps.

        Raises:
            UserError: If the steps differ, so the workers see different files.
        """
        if self.total(step) != step * self.count:
            raise UserError(
                f"worker {self.number} resumes from step {step}, other workers from "
                "another one: output_dir must be one folder that all of them can read."
            )

    def _sum_over_replicas(self, value: tf.Tensor) -> tf.Tensor:
        def add(value: tf.Tensor) -> tf.Tensor:
            replicas = tf.distribute.get_replica_context()
            # The copy is on the replica's device, which the sum needs to know.
            copy = tf.identity(value)
            return replicas.all_reduce(tf.distribute.ReduceOp.SUM, copy)

        sums = self._strategy.run(add, args=(value,))
        return self._strategy.experimental_local_results(sums)[0]


@contextmanager
def errors_of_other_workers(workers: Workers) -> Generator[None]:
    """Explain the error of a block that waits for a worker that has stopped.

    Raises:
        LostWorkerError: If another worker has stopped or cannot be reached.
    """
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        if workers.count == 1:
            raise
        raise LostWorkerError(
            f"worker {workers.number} of {workers.count} cannot reach another worker, "
            "which has stopped.\nStart all workers again: they resume from the last "
            "checkpoint."
        ) from error
