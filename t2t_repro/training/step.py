"""Compute one update of the weights, on one replica or on several."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from t2t_repro.constants import INPUTS, PAD_ID, TARGETS
from t2t_repro.data.pipeline import BATCH_SIGNATURE, PACKED_SIGNATURE, Batch
from t2t_repro.training.losses import rdrop_losses, token_losses, two_copies
from t2t_repro.training.optimizer import learning_rates_of, loss_scales_of
from t2t_repro.training.recovery import UpdateGuard, is_acceptable


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """Options of an update.

    Attributes:
        label_smoothing: The paper's epsilon_ls.
        clip_grad_norm: Largest gradient norm of all weights together; 0 = no
            clipping.
        jit_compile: Whether XLA compiles the step, once per batch shape.
        micro_batches: Number of equal parts of a replica's rows. Their gradients are
            computed one after the other and added up, which needs less memory.
        rdrop_weight: Weight of the divergence between two passes with different
            dropout; 0 = one pass. See `rdrop_losses`.
        rdrop_after_steps: Number of updates of one pass before the first of two.
        jit_products: Whether XLA, if it compiles the step, compiles matrix products,
            too. See `all_but_products`.
    """

    label_smoothing: float
    clip_grad_norm: float = 0.0
    jit_compile: bool = False
    micro_batches: int = 1
    rdrop_weight: float = 0.0
    rdrop_after_steps: int = 0
    jit_products: bool = True

    @property
    def jit_all(self) -> bool:
        """Whether XLA compiles the step as one function."""
        return self.jit_compile and self.jit_products

    def compile_scope(self) -> contextlib.AbstractContextManager[None]:
        """Return the scope of what XLA compiles, unless it compiles all or nothing."""
        some = self.jit_compile and not self.jit_products
        return all_but_products() if some else contextlib.nullcontext()


PRODUCTS = frozenset({"BatchMatMulV2", "BatchMatMulV3", "Einsum", "MatMul"})


def all_but_products() -> contextlib.AbstractContextManager[None]:
    """Return a scope whose operations XLA compiles, except matrix products.

    On a CPU, XLA's products are no faster in bfloat16 than in float32. TensorFlow's
    call oneDNN, which uses the processor's instructions for bfloat16. Between them,
    XLA fuses what TensorFlow computes operation by operation. Where
    `machine.multiplies_bfloat16` is false, this is slower than compiling the
    products as well (docs/training.md).

    The scope does not reach into the bodies of `tf.cond` and `tf.while_loop`. These
    need separate scopes.
    """
    return tf.xla.experimental.jit_scope(
        compile_ops=lambda node: node.op not in PRODUCTS
    )


def make_train_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    options: StepOptions,
    guard: UpdateGuard | None = None,
    *,
    packed: bool = False,
) -> Callable[[Batch], dict[str, tf.Tensor]]:
    """Make the function that trains on one global batch.

    The loss is divided by the number of real target tokens in the global batch, on all
    replicas together, so the number of replicas does not change the update.
    tensor2tensor: `expert_utils`, which sums numerators and denominators over shards.

    Neither does the number of micro-batches. Keras's `gradient_accumulation_steps`
    cannot do this: it averages gradients of micro-batches, each a mean over another
    number of tokens, it counts every micro-batch as an iteration, and it fails in
    `MirroredStrategy` (Keras 3.15).

    Args:
        model: A model that maps {"inputs", "targets"} to logits.
        optimizer: A Keras optimizer built on the model's variables.
        strategy: The strategy of the replicas.
        options: See `StepOptions`.
        guard: Decides which updates are skipped; None = every update is applied. A
            skipped update changes neither the weights nor the optimizer, so the
            learning rate schedule does not advance. The state of dropout does.
        packed: Whether the rows of a batch have several pairs, so that it has the
            `PACKED_FEATURES`.

    Returns:
        A function of a (distributed) batch, int32 `[rows, length]` per feature; the
        rows of each replica are a multiple of `micro_batches`. It returns float32
        scalars of the global batch: "loss" (with R-Drop's divergence) and "nll", in
        nats per target token, "gradient_norm", "learning_rate", "source_tokens",
        "target_tokens" and "positions" (of both sides, padding included). A Weighted
        Transformer adds "branch_learning_rate", loss scaling adds "loss_scale", and a
        guard adds "skipped", 1 or 0.
    """
    replica_step = _ReplicaStep(model, optimizer, options)
    if strategy.num_replicas_in_sync == 1:
        return tf.function(
            _guard_step(replica_step, guard),
            input_signature=[PACKED_SIGNATURE if packed else BATCH_SIGNATURE],
            jit_compile=options.jit_all,
        )
    if options.jit_all:
        # XLA compiles all but the sums over replicas.
        replica_step.gradients = tf.function(replica_step.gradients, jit_compile=True)

    def distributed_step(batch: Batch, *limits: tf.Tensor) -> dict[str, tf.Tensor]:
        # Every replica returns the sums over all of them.
        results = strategy.run(replica_step, args=(batch, *limits))
        return {
            name: strategy.experimental_local_results(value)[0]
            for name, value in results.items()
        }

    return tf.function(_guard_step(distributed_step, guard), reduce_retracing=True)


def _guard_step(
    step: Callable[..., dict[str, tf.Tensor]], guard: UpdateGuard | None
) -> Callable[[Batch], dict[str, tf.Tensor]]:
    """Give a step the limits of its guard, and the guard the results of the step."""
    if guard is None:
        return step

    def guarded_step(batch: Batch) -> dict[str, tf.Tensor]:
        results = step(batch, guard.limits())
        guard.count(results)
        return results

    return guarded_step


class _ReplicaStep:
    """The part of an update that runs on every replica."""

    def __init__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        options: StepOptions,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.options = options

    def __call__(
        self, batch: Batch, limits: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        counts = _sum_over_replicas(_count_tokens(batch))
        sums, gradients = self.gradients(batch, counts["target_tokens"])
        # Read before the update, which increments the schedule's step.
        learning_rates = learning_rates_of(self.optimizer)
        loss_scales = loss_scales_of(self.optimizer)
        before = (
            []
            if limits is None
            else [tf.identity(v) for v in self._updated_variables()]
        )
        gradient_norm = self._apply(gradients)
        results = {
            **counts,
            **_sum_over_replicas(sums),
            "gradient_norm": gradient_norm,
            **learning_rates,
            **loss_scales,
        }
        if limits is not None:
            results["skipped"] = self._undo_if_bad(results, limits, before)
        return results

    def gradients(
        self, batch: Batch, target_tokens: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], list[tf.Tensor]]:
        """Return this replica's share of the global means, and its gradients.

        Args:
            batch: The rows of this replica.
            target_tokens: Number of target tokens in the global batch, float32 scalar.
        """
        count = self.options.micro_batches
        if count == 1:
            return self._gradients_of_micro_batch(batch, target_tokens)
        parts = {
            name: tf.reshape(rows, [count, -1, tf.shape(rows)[1]])
            for name, rows in batch.items()
        }

        def add_micro_batch(number: tf.Tensor, *sums: Any) -> tuple[Any, ...]:
            part = {name: rows[number] for name, rows in parts.items()}
            values = self._gradients_of_micro_batch(part, target_tokens)
            return number + 1, *tf.nest.map_structure(tf.add, sums, values)

        variables = self.model.trainable_variables
        zeros = (
            {"loss": tf.constant(0.0), "nll": tf.constant(0.0)},
            [tf.zeros(v.shape, v.dtype) for v in variables],
        )
        # One at a time, or memory would have to hold the activations of several.
        _, sums, gradients = tf.while_loop(
            lambda number, *_: number < count,
            add_micro_batch,
            (tf.constant(0), *zeros),
            parallel_iterations=1,
        )
        return sums, gradients

    def _gradients_of_micro_batch(
        self, batch: Batch, target_tokens: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], list[tf.Tensor]]:
        """Return the share of some rows in the global means, and their gradients."""
        weight, start = self.options.rdrop_weight, self.options.rdrop_after_steps
        if not (weight and start):
            return self._losses_and_gradients(batch, target_tokens, weight)
        return tf.cond(
            tf.convert_to_tensor(self.optimizer.iterations) < start,
            lambda: self._losses_and_gradients(batch, target_tokens, 0.0),
            lambda: self._losses_and_gradients(batch, target_tokens, weight),
        )

    def _losses_and_gradients(
        self, batch: Batch, target_tokens: tf.Tensor, rdrop_weight: float
    ) -> tuple[dict[str, tf.Tensor], list[tf.Tensor]]:
        """Return losses and gradients, from two passes if `rdrop_weight` is not 0."""
        divisor = tf.maximum(target_tokens, 1.0)
        weights = [v.value for v in self.model.trainable_variables]
        with self.options.compile_scope():
            with tf.GradientTape() as tape:
                losses, nll = self._token_losses(batch, rdrop_weight)
                loss = tf.reduce_sum(losses) / divisor
                scaled_loss = self.optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled_loss, weights)
            # The embedding's gradient is sparse.
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return {"loss": loss, "nll": tf.reduce_sum(nll) / divisor}, gradients

    def _token_losses(
        self, batch: Batch, rdrop_weight: float
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the loss and the nll of every target token, `[rows, length]`."""
        smoothing = self.options.label_smoothing
        if not rdrop_weight:
            logits = self.model(batch, training=True)
            return token_losses(batch[TARGETS], logits, smoothing)
        logits = self.model(two_copies(batch), training=True)
        return rdrop_losses(batch[TARGETS], logits, smoothing, rdrop_weight)

    def _apply(self, gradients: list[tf.Tensor]) -> tf.Tensor:
        """Update the weights and return the norm of the global gradient."""
        replicas = tf.distribute.get_replica_context()
        gradients = replicas.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        # The factor of a loss-scaling optimizer; 1 for any other.
        loss_scale = self.optimizer.scale_loss(tf.constant(1.0))
        norm = tf.linalg.global_norm(gradients) / loss_scale
        scale = 1.0 / replicas.num_replicas_in_sync
        if self.options.clip_grad_norm:
            limit = tf.constant(self.options.clip_grad_norm)
            scale *= limit / tf.maximum(norm, limit)
        # Replicas take turns at every sum, so their scopes would overlap here.
        alone = replicas.num_replicas_in_sync == 1
        with self.options.compile_scope() if alone else contextlib.nullcontext():
            # Keras optimizers sum the gradients over the replicas again, hence the
            # scale.
            self.optimizer.apply(
                [gradient * scale for gradient in gradients],
                self.model.trainable_variables,
            )
        return norm

    def _updated_variables(self) -> list[tf.Variable]:
        """Return the variables that an update changes."""
        variables = (*self.model.trainable_variables, *self.optimizer.variables)
        return [variable.value for variable in variables]

    def _undo_if_bad(
        self,
        results: dict[str, tf.Tensor],
        limits: tf.Tensor,
        before: list[tf.Tensor],
    ) -> tf.Tensor:
        """Return 1.0 if the update was not acceptable and is undone, else 0.0.

        The values are selected, which XLA does while it computes them. A conditional
        update cannot be distributed: replicas cannot meet inside `tf.cond`.

        Args:
            results: Metrics of the update.
            limits: See `UpdateGuard.limits`.
            before: Values of `_updated_variables` before the update.
        """
        accepted = is_acceptable(
            limits,
            results["loss"],
            results["gradient_norm"],
            results.get("loss_scale"),
        )

        def select(
            strategy: tf.distribute.Strategy, accepted: tf.Tensor, *before: tf.Tensor
        ) -> None:
            for variable, old in zip(self._updated_variables(), before, strict=True):
                strategy.extended.update(
                    variable,
                    lambda new, old, keep: new.assign(tf.where(keep, new, old)),
                    args=(old, accepted),
                )

        replicas = tf.distribute.get_replica_context()
        replicas.merge_call(select, args=(accepted, *before))
        return tf.cast(~accepted, tf.float32)


def _count_tokens(batch: Batch) -> dict[str, tf.Tensor]:
    """Count the real tokens of each side, and all positions with padding."""

    def real(ids: tf.Tensor) -> tf.Tensor:
        return tf.math.count_nonzero(tf.not_equal(ids, PAD_ID), dtype=tf.float32)

    inputs, targets = batch[INPUTS], batch[TARGETS]
    return {
        "source_tokens": real(inputs),
        "target_tokens": real(targets),
        "positions": tf.cast(tf.size(inputs) + tf.size(targets), tf.float32),
    }


def _sum_over_replicas(values: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    replicas = tf.distribute.get_replica_context()
    return {
        name: replicas.all_reduce(tf.distribute.ReduceOp.SUM, value)
        for name, value in values.items()
    }
