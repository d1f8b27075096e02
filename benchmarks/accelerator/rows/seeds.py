"""Train one model with several seeds at once; Keras's JAX backend.

A small model leaves most of an accelerator idle. Here, one compiled update computes
that of every seed (`jax.vmap`), each with its own weights, dropout and batch.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.accelerator.jax_step import Batch, TrainState, copy_state, make_update
from benchmarks.accelerator.rows.corpus import Corpus
from t2t_repro.constants import PAD_ID, TARGETS
from t2t_repro.models.token_counters import TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.losses import token_losses
from t2t_repro.training.optimizer import make_optimizer

Weights = list[jax.Array]
# (state, number of a shape, number of its batch) -> (next state, metrics)
Step = Callable[[TrainState, int, int], tuple[TrainState, dict[str, jax.Array]]]


@dataclasses.dataclass
class SeedTraining:
    """A model, and the state of its training for every seed.

    Attributes:
        hparams: The complete hparams.
        model: The model; its own weights are not used.
        optimizer: Its optimizer, built.
        state: State of all seeds, `[seeds, ...]` each.
    """

    hparams: HParams
    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    state: TrainState

    @classmethod
    def begin(
        cls,
        hparams: HParams,
        vocab_sizes: tuple[int, int],
        seeds: Sequence[int],
        train_steps: int,
        counters: TokenCounters | None = None,
    ) -> SeedTraining:
        """Build the model, and draw the initial weights of every seed.

        Args:
            hparams: The complete hparams.
            vocab_sizes: Sizes of the source and the target vocabulary.
            seeds: Seeds of initial weights and dropout.
            train_steps: Number of updates.
            counters: See `Transformer.from_hparams`.
        """
        states = []
        for seed in seeds:
            keras.utils.set_random_seed(seed)
            model = Transformer.from_hparams(hparams, *vocab_sizes, counters)
            optimizer = make_optimizer(hparams, train_steps)
            optimizer.build(model.trainable_variables)
            states.append(copy_state(model, optimizer))
        stacked = jax.tree.map(lambda *values: jnp.stack(values), *states)
        return cls(hparams, model, optimizer, stacked)

    def compile(self, data: Sequence[Batch]) -> Step:
        """Compile the update of all seeds for every shape, at the same time.

        Args:
            data: All batches of each shape, `[batches, seeds, rows, length]` per
                feature. A shape without batches is left out.

        Returns:
            A function of a state, the number of a shape and the number of its batch. It
            returns the next state, which overwrites the given one, and the metrics of
            `make_step`, `[seeds]`.
        """
        update = jax.vmap(make_update(self.model, self.optimizer, self.hparams))

        def step(
            state: TrainState, batches: Batch, number: jax.Array
        ) -> tuple[TrainState, dict[str, jax.Array]]:
            return update(
                state, {name: x[number].astype("int32") for name, x in batches.items()}
            )

        jitted = jax.jit(step, donate_argnums=0)
        used = [n for n, batches in enumerate(data) if len(batches[TARGETS])]
        lowered = [jitted.lower(self.state, data[n], jnp.asarray(0)) for n in used]
        with ThreadPoolExecutor(len(used)) as threads:
            done = threads.map(lambda each: each.compile(), lowered)
            compiled = dict(zip(used, done, strict=True))
        return lambda state, shape, number: compiled[shape](
            state, data[shape], jnp.asarray(number)
        )

    def dev_nll(self, dev: Batch) -> Callable[[Weights], np.ndarray]:
        """Make the function that measures the nll of dev, compiled by its first call.

        It is that of `evaluation.development`.

        Args:
            dev: Pairs, int32 `[pairs, length]` per side.

        Returns:
            A function from the weights of all seeds to nats per target token, float32
            `[seeds]`.
        """
        # A copy, because the step overwrites these states of dropout. Evaluation reads
        # none of them.
        other = [jnp.array(value) for value in self.state.non_trainable]

        @jax.jit
        def nll(trainable: Weights) -> jax.Array:
            def of_one_seed(values: tuple[Weights, Weights]) -> jax.Array:
                logits, _ = self.model.stateless_call(*values, dev, training=False)
                _, losses = token_losses(dev[TARGETS], logits, 0.0)
                return jnp.sum(losses) / jnp.sum(dev[TARGETS] != PAD_ID)

            return jax.lax.map(of_one_seed, (trainable, other))

        return lambda trainable: np.asarray(nll(trainable))


def device_batches(
    corpus: Corpus, seeds: Sequence[int], counts: Sequence[int]
) -> list[Batch]:
    """Put the first batches of every shape on the device.

    Args:
        corpus: The corpus.
        seeds: The seeds, each with its own batches.
        counts: Number of batches of each shape.

    Returns:
        Features by name, uint16 `[count, seeds, rows, length]`, per shape.
    """
    data = []
    for shape, count in enumerate(counts):
        of_seeds = [corpus.batches(seed, shape, count) for seed in seeds]
        data.append(
            {
                name: jnp.asarray(np.stack([each[name] for each in of_seeds], axis=1))
                for name in of_seeds[0]
            }
        )
    return data


def branch_weights(model: keras.Model, trainable: Weights) -> dict[str, np.ndarray]:
    """Return kappa and alpha of all seeds, `[seeds, branches]`, by path."""
    return {
        variable.path: np.asarray(values)
        for variable, values in zip(model.trainable_variables, trainable, strict=True)
        if variable.name in ("kappa", "alpha")
    }


@dataclasses.dataclass
class Curves:
    """What training measures at some steps.

    Attributes:
        steps: The steps.
        loss: Mean training loss since the point before, `[seeds]` each.
        nll: Nll of dev per target token, `[seeds]` each.
        branches: Kappa and alpha, `[seeds, branches]`, by path.
    """

    steps: list[int] = dataclasses.field(default_factory=list)
    loss: list[np.ndarray] = dataclasses.field(default_factory=list)
    nll: list[np.ndarray] = dataclasses.field(default_factory=list)
    branches: list[Mapping[str, np.ndarray]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Trained:
    """Result of training all seeds.

    Attributes:
        curves: What was measured.
        averaged: Mean of the last weights.
        seconds: Time of the updates.
    """

    curves: Curves
    averaged: Weights
    seconds: float


def train(
    seeds: SeedTraining,
    step: Step,
    dev_nll: Callable[[Weights], np.ndarray],
    shapes: Sequence[int],
    *,
    measure_every: int,
    average_last: int,
    report: Callable[[int, Curves, float], Any],
) -> Trained:
    """Train all seeds, and average their last weights.

    Args:
        seeds: The training, whose state becomes that after the last update.
        step: The function of `SeedTraining.compile`.
        dev_nll: The function of `SeedTraining.dev_nll`.
        shapes: Number of the shape of each update's batch.
        measure_every: Number of steps between measurements, which divides their number.
        average_last: Number of measured steps to average.
        report: Called after every measurement with the step, the curves and the
            seconds of the updates so far.
    """
    curves, state = Curves(), seeds.state
    used: dict[int, int] = {}
    averaged: Weights = []
    losses = []
    seconds, begin = 0.0, time.perf_counter()
    for number, shape in enumerate(shapes, start=1):
        state, metrics = step(state, shape, used.get(shape, 0))
        used[shape] = used.get(shape, 0) + 1
        losses.append(metrics["loss"])
        if number % measure_every:
            continue
        curves.loss.append(np.asarray(jnp.mean(jnp.stack(losses), axis=0)))
        seconds += time.perf_counter() - begin
        curves.steps.append(number)
        curves.nll.append(dev_nll(state.trainable))
        curves.branches.append(branch_weights(seeds.model, state.trainable))
        losses = []
        if number > len(shapes) - average_last * measure_every:
            last = [x / average_last for x in state.trainable]
            averaged = jax.tree.map(jnp.add, averaged, last) if averaged else last
        report(number, curves, seconds)
        begin = time.perf_counter()
    seeds.state = state
    return Trained(curves, averaged, seconds)
