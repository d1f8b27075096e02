"""Prepare devices and random numbers for training; read its learning rates."""

from __future__ import annotations

import keras
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.processor import multiplies_bfloat16
from t2t_repro.training.cluster import find_cluster, make_workers_strategy
from t2t_repro.training.training_checkpoints import random_states


def make_strategy(
    cpu_replicas: int = 0, cluster: str = "tf_config"
) -> tf.distribute.Strategy:
    """Choose the devices of the replicas; call this before TensorFlow starts.

    Args:
        cpu_replicas: Number of replicas on this CPU, to try data parallelism without
            GPUs. 0 = one on every visible GPU, or one on the CPU.
        cluster: See `find_cluster`. With several workers, this function waits until all
            of them have called it.

    Returns:
        `MultiWorkerMirroredStrategy` for several workers, `MirroredStrategy` for
        several replicas in this process, the default strategy for one.

    Raises:
        UserError: If TensorFlow has already started, so that its CPU device cannot be
            divided any more, or the cluster is not described correctly.
    """
    if cpu_replicas:
        _make_cpu_replicas(cpu_replicas)
    workers = find_cluster(cluster)
    if workers is not None:
        return make_workers_strategy(workers, cpu_replicas)
    return _strategy_of_this_process(cpu_replicas)


def make_local_strategy(cpu_replicas: int = 0) -> tf.distribute.Strategy:
    """Choose the devices of this process, and ignore other workers.

    Args:
        cpu_replicas: See `make_strategy`.

    Raises:
        UserError: If TensorFlow has already started.
    """
    if cpu_replicas:
        _make_cpu_replicas(cpu_replicas)
    return _strategy_of_this_process(cpu_replicas)


def _strategy_of_this_process(cpu_replicas: int) -> tf.distribute.Strategy:
    if cpu_replicas > 1:
        return tf.distribute.MirroredStrategy(
            [f"CPU:{number}" for number in range(cpu_replicas)]
        )
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
    """Let the same program compute the same numbers again on this machine.

    On a CPU it does so in any case. The data and its order are the same on every
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


def should_use_xla(strategy: tf.distribute.Strategy) -> bool:
    """Return whether XLA should compile training steps.

    Replicas on one CPU would wait for each other inside the compiled step. With fewer
    threads than replicas, they would wait forever.
    """
    on_gpu = bool(tf.config.get_visible_devices("GPU"))
    return on_gpu or strategy.num_replicas_in_sync == 1


def uses_xla(xla: str, strategy: tf.distribute.Strategy) -> bool:
    """Return whether XLA compiles training steps, as the user or the strategy decides.

    Args:
        xla: "on", "fusible", "off", or "auto", which asks `should_use_xla`.
        strategy: The strategy of the replicas.
    """
    return should_use_xla(strategy) if xla == "auto" else xla != "off"


def compiles_products(xla: str, activation_dtype: str) -> bool:
    """Return whether XLA compiles matrix products, if it compiles training steps.

    XLA's products of bfloat16 do not use the processor's instructions for them;
    TensorFlow's do (`all_but_products`).

    Args:
        xla: "on", "fusible", "off", or "auto": all but products of bfloat16 on a
            processor with fast instructions for them (`multiplies_bfloat16`).
        activation_dtype: Dtype of the products.
    """
    if xla != "auto":
        return xla != "fusible"
    on_gpu = bool(tf.config.get_visible_devices("GPU"))
    return on_gpu or activation_dtype != "bfloat16" or not multiplies_bfloat16()


def seed_dropout_per_replica(
    model: keras.Model, strategy: tf.distribute.Strategy, first_replica: int = 0
) -> None:
    """Give every replica its own random state, derived from the first replica's.

    Keras starts all replicas from the same state, so that row 1 of every replica would
    lose the same units. Call this when the state is new or restored; checkpoints hold
    the state of the first replica.

    Args:
        model: A model made under the strategy's scope.
        strategy: The strategy of the replicas.
        first_replica: Number of this process's first replica among all replicas.
    """
    for state in random_states(model).values():
        copies = strategy.experimental_local_results(state)
        start = tf.identity(copies[0])
        for number, copy in enumerate(copies, first_replica):
            copy.assign(start + tf.constant([number, 0], start.dtype))


def learning_rates_of(optimizer: keras.optimizers.Optimizer) -> dict[str, tf.Tensor]:
    """Return the learning rates of the next update, float32 scalars.

    Args:
        optimizer: An optimizer of `training.optimizer.make_optimizer`.

    Returns:
        "learning_rate", and "branch_learning_rate" if kappa and alpha have another.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not isinstance(optimizer, keras.optimizers.MultiOptimizer):
        return {"learning_rate": tf.convert_to_tensor(optimizer.learning_rate)}
    branch, default = optimizer.optimizers  # the default is the last one
    return {
        "learning_rate": tf.convert_to_tensor(default.learning_rate),
        "branch_learning_rate": tf.convert_to_tensor(branch.learning_rate),
    }
