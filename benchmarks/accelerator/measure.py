"""Time training steps and matrix products on a JAX device."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.accelerator.jax_step import TrainState, copy_state, make_step
from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.errors import UserError
from t2t_repro.layers import Dropout
from t2t_repro.models.sizes import training_flops
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.optimizer import make_optimizer

WARM_UP_STEPS = 3
FIRST_ID = 2  # after PAD and EOS
MATMULS = 16  # products per timed call, so that starting it costs nothing
MATMUL_REPEATS = 7

# Name of a precision -> hparam `activation_dtype`, and JAX's precision of products of
# float32 matrices. An NVIDIA GPU would otherwise round their operands to 10 bits.
PRECISIONS = {
    "bfloat16": ("bfloat16", "highest"),
    "float32": ("float32", "highest"),
    "tensorfloat32": ("float32", "tensorfloat32"),
}
DROPOUTS = ("hash", "keras", "none")


@dataclasses.dataclass(frozen=True)
class Shape:
    """Size of a batch.

    Attributes:
        rows: Number of sentence pairs.
        length: Number of tokens per side; no position is padding.
    """

    rows: int
    length: int

    @property
    def tokens(self) -> int:
        """Number of target tokens."""
        return self.rows * self.length

    def __str__(self) -> str:
        return f"{self.rows}x{self.length}"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Result of timing one shape.

    Attributes:
        rows: Number of sentence pairs.
        length: Number of tokens per side.
        failure: The reason why there are no figures, or None.
        compile_seconds: Time of compilation, which is not part of a step.
        step_seconds: Median time of a step.
        steps: Number of timed steps.
        target_tokens_per_second: Target tokens of the batch per median step.
        flops: Operations of a step, by `training_flops`.
        compiler_flops: Operations of a step as the compiler counts them, or None.
        share_of_matmul_rate: Rate of the step's operations divided by that of a large
            matrix product.
        step_bytes: Memory that the compiled step needs, with the weights and the
            optimizer, or None if the compiler does not tell.
        peak_bytes: Largest memory in use on the device since the process began, or None
            if the device does not tell.
        loss: Loss of the last step, in nats per target token.
    """

    rows: int
    length: int
    failure: str | None = None
    compile_seconds: float | None = None
    step_seconds: float | None = None
    steps: int = 0
    target_tokens_per_second: float | None = None
    flops: float | None = None
    compiler_flops: float | None = None
    share_of_matmul_rate: float | None = None
    step_bytes: int | None = None
    peak_bytes: int | None = None
    loss: float | None = None


@contextmanager
def chosen_dropout(kind: str) -> Iterator[None]:
    """Let the layers of `t2t_repro` compute the dropout of Keras instead of their own.

    Args:
        kind: "keras" for Keras's; any other value changes nothing.
    """
    if kind != "keras":
        yield
        return
    with mock.patch.object(Dropout, "call", keras.layers.Dropout.call):
        yield


def with_dropout(hparams: HParams, kind: str) -> HParams:
    """Return the hparams, without any dropout if the kind is "none"."""
    if kind != "none":
        return hparams
    names = ("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout")
    return hparams.replace(**dict.fromkeys(names, 0.0))


def matmul_rate(size: int, dtype: str) -> float:
    """Measure the rate of square matrix products, in operations per second.

    Args:
        size: Number of rows and columns.
        dtype: Dtype of the matrices.
    """
    keys = jax.random.split(jax.random.key(1))
    # The spread keeps the values of a chain of products near 1.
    x, y = (jax.random.normal(key, (size, size), dtype=dtype) for key in keys)
    y = y * jnp.asarray(size**-0.5, dtype)

    @jax.jit
    def products(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, MATMULS, lambda _, x: jnp.matmul(x, y), x)

    jax.block_until_ready(products(x, y))
    times = []
    for _ in range(MATMUL_REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(products(x, y))
        times.append(time.perf_counter() - start)
    return MATMULS * 2 * size**3 / statistics.median(times)


class Benchmark:
    """A model and its training step, to be timed on batches of several shapes.

    Args:
        hparams: Hparams of the model and its training.
        vocab_size: Size of the vocabulary of both sides.
        seed: Seed of the weights and the batches.
    """

    def __init__(self, hparams: HParams, vocab_size: int, seed: int = 1) -> None:
        keras.utils.set_random_seed(seed)
        self.hparams = hparams
        self.vocab_size = vocab_size
        self.seed = seed
        model = Transformer.from_hparams(hparams, vocab_size, vocab_size)
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
        self.parameters = model.count_params()
        self.step = make_step(model, optimizer, hparams)
        # On the host: every shape begins with its own state on the device.
        self.initial = jax.device_get(copy_state(model, optimizer))

    def measure(
        self, shape: Shape, steps: int, rate: float, deadline: float = math.inf
    ) -> Measurement:
        """Compile the step for a shape, warm it up and time it.

        Args:
            shape: Size of the batch.
            steps: Number of timed steps.
            rate: Operations per second of `matmul_rate`.
            deadline: Value of `time.monotonic` after which no step begins. Compilation
                cannot be stopped.

        Returns:
            The figures; or the reason why there are none, if the device has too little
            memory or no time is left.
        """
        if time.monotonic() >= deadline:
            return Measurement(shape.rows, shape.length, failure="no time left")
        try:
            return self._measure(shape, steps, rate, deadline)
        except jax.errors.JaxRuntimeError as error:
            if not is_out_of_memory(error):
                raise
            reason = str(error).strip().splitlines()[0][:200]
            return Measurement(
                shape.rows, shape.length, failure=f"out of memory: {reason}"
            )

    def _measure(
        self, shape: Shape, steps: int, rate: float, deadline: float
    ) -> Measurement:
        batch = jax.device_put(self.batch(shape))
        start = time.perf_counter()
        compiled = self.step.lower(self.initial, batch).compile()
        compile_seconds = time.perf_counter() - start
        state = jax.device_put(self.initial)
        times, loss = _timed_steps(compiled, state, batch, steps, deadline)
        figures = {"compile_seconds": compile_seconds, "loss": loss}
        if not times:
            return Measurement(
                shape.rows, shape.length, failure="no time left", **figures
            )
        seconds = statistics.median(times)
        flops = training_flops(
            self.hparams, self.vocab_size, shape.tokens, shape.length
        )
        return Measurement(
            shape.rows,
            shape.length,
            step_seconds=seconds,
            steps=len(times),
            target_tokens_per_second=shape.tokens / seconds,
            flops=flops,
            compiler_flops=compiler_flops(compiled),
            share_of_matmul_rate=flops / seconds / rate,
            step_bytes=step_bytes(compiled),
            peak_bytes=peak_bytes(),
            **figures,
        )

    def batch(self, shape: Shape) -> dict[str, np.ndarray]:
        """Return a batch of random ids without padding, int32 `[rows, length]`."""
        random = np.random.default_rng(self.seed)
        size = (shape.rows, shape.length)
        return {
            side: random.integers(FIRST_ID, self.vocab_size, size, dtype=np.int32)
            for side in (INPUTS, TARGETS)
        }


def _timed_steps(
    step: Callable[..., tuple[TrainState, dict[str, jax.Array]]],
    state: TrainState,
    batch: dict[str, jax.Array],
    steps: int,
    deadline: float,
) -> tuple[list[float], float]:
    """Return the seconds of the steps after the warm-up, and the last loss.

    Raises:
        UserError: If the loss is not finite, so that the figures would mean nothing.
    """
    times = []
    for _ in range(WARM_UP_STEPS + steps):
        start = time.perf_counter()
        state, metrics = jax.block_until_ready(step(state, batch))
        times.append(time.perf_counter() - start)
        if time.monotonic() >= deadline:
            break
    loss = float(metrics["loss"])
    if not math.isfinite(loss):
        raise UserError(f"the loss is {loss} after {len(times)} steps.")
    return times[WARM_UP_STEPS:], loss


def is_out_of_memory(error: Exception) -> bool:
    """Return whether JAX raised the error because a device has too little memory."""
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()


def compiler_flops(compiled: Any) -> float | None:
    """Return the operations of a compiled function as XLA counts them, or None.

    Products that XLA gives to a library, as it does on GPUs, may be missing.
    """
    return (compiled.cost_analysis() or {}).get("flops")


def step_bytes(compiled: Any) -> int | None:
    """Return the memory that a compiled function needs, or None if unknown."""
    sizes = compiled.memory_analysis()
    if sizes is None:
        return None
    return (
        sizes.argument_size_in_bytes
        + sizes.output_size_in_bytes
        - sizes.alias_size_in_bytes
        + sizes.temp_size_in_bytes
    )


def peak_bytes() -> int | None:
    """Return the largest memory in use on the device so far, or None if unknown."""
    return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
