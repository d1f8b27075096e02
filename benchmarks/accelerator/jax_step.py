"""One update of the weights on Keras's JAX backend, as a pure function.

The model, the loss, the optimizer and its schedule are those of `t2t_repro.training`,
which computes the same update on TensorFlow (`training/step.py`). No module imported
here needs TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import keras

from t2t_repro.constants import PAD_ID, TARGETS
from t2t_repro.errors import UserError
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.losses import rdrop_losses, token_losses, two_copies

# Name of a precision -> JAX's precision of products of float32 matrices. An NVIDIA GPU
# would otherwise round their operands to 10 bits.
PRECISIONS = {
    "float32": "highest",
    "tensorfloat32": "tensorfloat32",
    "bfloat16": "highest",
}

Batch = dict[str, Any]


class TrainState(NamedTuple):
    """Values of the variables that an update changes, in their order.

    Attributes:
        trainable: `model.trainable_variables`.
        non_trainable: `model.non_trainable_variables`, the states of dropout.
        optimizer: `optimizer.variables`.
    """

    trainable: list[jax.Array]
    non_trainable: list[jax.Array]
    optimizer: list[jax.Array]


Update = Callable[[TrainState, Batch], tuple[TrainState, jax.Array]]


def require_jax() -> None:
    """Refuse to run on another backend of Keras.

    Raises:
        UserError: If Keras was imported with another backend than JAX.
    """
    backend = keras.backend.backend()
    if backend != "jax":
        raise UserError(
            f"received the Keras backend {backend}, expected jax: set the environment "
            "variable KERAS_BACKEND=jax."
        )


def with_precision(hparams: HParams, precision: str) -> HParams:
    """Return the hparams of a training run in one of `PRECISIONS`."""
    if precision == "bfloat16":
        return hparams.replace(activation_dtype="bfloat16")
    return hparams


def copy_state(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> TrainState:
    """Copy the values of a model and its built optimizer.

    A step may overwrite its state in place, so it must not get the variables' own
    arrays.
    """
    weights, others = model.trainable_variables, model.non_trainable_variables
    groups = (weights, others, optimizer.variables)
    return TrainState(*([jnp.array(v.value) for v in group] for group in groups))


def make_update(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, hparams: HParams
) -> Update:
    """Make the pure function of one update, not compiled.

    It returns the next state, and the loss in nats per target token. The features of a
    batch are int32 `[rows, length]`.

    Raises:
        UserError: If activations are float16, whose loss would have to be scaled, or
            R-Drop begins later.
    """
    if hparams.rdrop_after_steps:
        raise UserError(
            f"received rdrop_after_steps={hparams.rdrop_after_steps}, expected 0: on "
            "JAX, every update has two passes, or none has."
        )
    if hparams.activation_dtype == "float16":
        raise UserError(
            "received activation_dtype=float16, expected float32 or bfloat16: the "
            "step on JAX does not scale the loss."
        )

    def loss_of(
        trainable: list[jax.Array], non_trainable: list[jax.Array], batch: Batch
    ) -> tuple[jax.Array, list[jax.Array]]:
        smoothing, weight = hparams.label_smoothing, hparams.rdrop_weight
        logits, non_trainable = model.stateless_call(
            trainable,
            non_trainable,
            two_copies(batch) if weight else batch,
            training=True,
        )
        targets = batch[TARGETS]
        if weight:
            losses, _ = rdrop_losses(targets, logits, smoothing, weight)
        else:
            losses, _ = token_losses(targets, logits, smoothing)
        tokens = jnp.sum(targets != PAD_ID, dtype="float32")
        return jnp.sum(losses) / jnp.maximum(tokens, 1.0), non_trainable

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, jax.Array]:
        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (loss, non_trainable), gradients = gradient_of(
            state.trainable, state.non_trainable, batch
        )
        if hparams.clip_grad_norm:
            gradients = _clipped(gradients, hparams.clip_grad_norm)
        trainable, optimizer_values = optimizer.stateless_apply(
            state.optimizer, gradients, state.trainable
        )
        return TrainState(trainable, non_trainable, optimizer_values), loss

    return step


def _clipped(gradients: list[jax.Array], limit: float) -> list[jax.Array]:
    """Return gradients whose common norm is at most `limit`."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in gradients))
    scale = limit / jnp.maximum(norm, limit)
    return [gradient * scale for gradient in gradients]
