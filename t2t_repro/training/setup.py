"""What training needs besides a model: devices and an optimizer."""

from __future__ import annotations

import keras
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.hyperparameters import HParams
from t2t_repro.training.checkpoints import random_states
from t2t_repro.training.schedules import FactorSchedule


def make_strategy(cpu_replicas: int = 0) -> tf.distribute.Strategy:
    """Choose where replicas run; to be called before anything else runs.

    Args:
        cpu_replicas: Replicas on this CPU, to try data parallelism without GPUs;
            0 = one on every visible GPU, or one on the CPU.

    Returns:
        MirroredStrategy for several replicas, the default strategy for one.

    Raises:
        UserError: If TensorFlow is already running and cannot be split any more.
    """
    if cpu_replicas:
        # Whoever asks for the CPU gets it, GPUs or none.
        tf.config.set_visible_devices([], "GPU")
    if cpu_replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        try:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * cpu_replicas
            )
        except RuntimeError as error:
            raise UserError(
                f"cannot make {cpu_replicas} CPU replicas: TensorFlow has already "
                "started in this process. Start a new one."
            ) from error
        return tf.distribute.MirroredStrategy(
            [f"CPU:{number}" for number in range(cpu_replicas)]
        )
    if len(tf.config.get_visible_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def make_repeatable(seed: int) -> None:
    """Make the same program compute the same numbers again on this machine.

    Args:
        seed: Of initial weights and dropout, from 0 to 2^32 - 1.
    """
    keras.utils.set_random_seed(seed)
    # On a GPU some sums, such as the embedding's gradient, run in any order, unless
    # this is asked for. A CPU's order is fixed.
    if tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


def xla_is_wise(strategy: tf.distribute.Strategy) -> bool:
    """Say whether training steps should be compiled by XLA.

    Replicas on one CPU wait for each other in a compiled step, with fewer threads
    than replicas: that hangs.
    """
    on_gpu = bool(tf.config.get_visible_devices("GPU"))
    return on_gpu or strategy.num_replicas_in_sync == 1


def separate_dropout(model: keras.Model, strategy: tf.distribute.Strategy) -> None:
    """Give every replica a dropout of its own, fixed by the first replica's.

    Keras begins all replicas with one random state, so that row 1 of every replica
    would lose the same units. To be called when the state is new or restored;
    checkpoints hold the first replica's.

    Args:
        model: Made under the strategy's scope.
        strategy: Where the replicas are.
    """
    for state in random_states(model).values():
        copies = strategy.experimental_local_results(state)
        for number, copy in enumerate(copies):
            copy.assign(copies[0] + [number, 0])


def make_schedule(hparams: HParams) -> FactorSchedule:
    """Make the hparams' learning-rate schedule."""
    return FactorSchedule(
        hparams.learning_rate_schedule,
        constant=hparams.learning_rate_constant,
        warmup_steps=hparams.learning_rate_warmup_steps,
        hidden_size=hparams.hidden_size,
    )


def make_optimizer(hparams: HParams) -> keras.optimizers.Optimizer:
    """Make Adam with the hparams' schedule (paper section 5.3).

    Args:
        hparams: The set.

    Returns:
        The optimizer, not built yet; float16 activations get dynamic loss scaling.
    """
    adam = keras.optimizers.Adam(
        make_schedule(hparams),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        name="adam",  # part of the names in checkpoints
    )
    if hparams.activation_dtype == "float16":
        return keras.optimizers.LossScaleOptimizer(adam, name="loss_scale")
    return adam
