"""One update of the weights on Keras's JAX backend, as a compiled pure function.

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
from t2t_repro.training.losses import token_losses
from t2t_repro.training.rdrop import rdrop_losses, two_copies

Batch = dict[str, Any]


class TrainState(NamedTuple):
    """All values that an update changes.

    Attributes:
        trainable: Weights, in the order of `model.trainable_variables`.
        non_trainable: States of the dropout generators, in the order of
            `model.non_trainable_variables`.
        optimizer: In the order of `optimizer.variables`.
    """

    trainable: list[jax.Array]
    non_trainable: list[jax.Array]
    optimizer: list[jax.Array]


Update = Callable[[TrainState, Batch], tuple[TrainState, dict[str, jax.Array]]]


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


def copy_state(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> TrainState:
    """Copy the values of a model and its built optimizer.

    The step may overwrite its state in place, so it must not get the variables' own
    arrays.
    """
    groups = (
        model.trainable_variables,
        model.non_trainable_variables,
        optimizer.variables,
    )
    return TrainState(*([jnp.array(v.value) for v in group] for group in groups))


def assign_state(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, state: TrainState
) -> None:
    """Write the values of a state back to a model and its optimizer."""
    groups = (
        (model.trainable_variables, state.trainable),
        (model.non_trainable_variables, state.non_trainable),
        (optimizer.variables, state.optimizer),
    )
    for variables, values in groups:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def make_step(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, hparams: HParams
) -> Update:
    """Make the function that trains on one batch.

    It is compiled once per batch shape, and overwrites the memory of its first
    argument, which must not be used again. See `make_update`.
    """
    return jax.jit(make_update(model, optimizer, hparams), donate_argnums=0)


def make_update(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, hparams: HParams
) -> Update:
    """Make the pure function of one update, not compiled.

    Args:
        model: A model that maps {"inputs", "targets"} to logits.
        optimizer: Its optimizer, built.
        hparams: `label_smoothing`, `rdrop_weight` and `clip_grad_norm` are read here.

    Returns:
        A function of a state and a batch: int32 `[rows, length]` per side, or the
        features of packed rows. It returns the next state, and float32 scalars: "loss"
        (nats per target token), "gradient_norm" and "target_tokens".

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
    ) -> tuple[jax.Array, tuple[list[jax.Array], jax.Array]]:
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
        return jnp.sum(losses) / jnp.maximum(tokens, 1.0), (non_trainable, tokens)

    def step(
        state: TrainState, batch: Batch
    ) -> tuple[TrainState, dict[str, jax.Array]]:
        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (loss, (non_trainable, tokens)), gradients = gradient_of(
            state.trainable, state.non_trainable, batch
        )
        gradients, norm = _clipped(gradients, hparams.clip_grad_norm)
        trainable, optimizer_values = optimizer.stateless_apply(
            state.optimizer, gradients, state.trainable
        )
        metrics = {"loss": loss, "gradient_norm": norm, "target_tokens": tokens}
        return TrainState(trainable, non_trainable, optimizer_values), metrics

    return step


def _clipped(
    gradients: list[jax.Array], limit: float
) -> tuple[list[jax.Array], jax.Array]:
    """Return gradients whose common norm is at most `limit`, and the norm before.

    A limit of 0 changes nothing.
    """
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in gradients))
    if limit:
        scale = limit / jnp.maximum(norm, limit)
        gradients = [gradient * scale for gradient in gradients]
    return gradients, norm
