"""Train one model with several seeds at once; Keras's JAX backend.

A small model leaves most of an accelerator idle. Here, one compiled update computes
that of every seed (`jax.vmap`), each with its own weights, dropout and batch.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.accelerator.jax_step import Batch, TrainState, copy_state, make_update
from benchmarks.accelerator.rows.corpus import Arrays, Corpus
from benchmarks.accelerator.rows.job import AVERAGED, LAST, Job, state_variables
from t2t_repro.constants import PAD_ID, TARGETS
from t2t_repro.models.token_counters import TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.losses import token_losses
from t2t_repro.training.optimizer import make_optimizer

Weights = list[jax.Array]
# (state, number of a kind, number of its batch) -> (next state, losses)
Step = Callable[[TrainState, int, int], tuple[TrainState, jax.Array]]
Likelihood = Callable[[Weights], np.ndarray]


class SeedTraining:
    """A model, and the state of its training for every seed.

    Args:
        job: The job.
        hparams: Its hparams, in the precision of the training.
        first_state: State to begin with instead of drawn weights, by the names of
            `state_variables`; may be empty.

    Attributes:
        model: The model; its own weights are not used.
        optimizer: Its optimizer, built.
        state: State of all seeds, `[seeds, ...]` each.
    """

    def __init__(self, job: Job, hparams: HParams, first_state: Arrays) -> None:
        counters = job.counters and TokenCounters.from_config(job.counters)
        states = []
        for seed in job.seeds:
            keras.utils.set_random_seed(seed)
            model = Transformer.from_hparams(hparams, *job.vocab_sizes, counters)
            optimizer = make_optimizer(hparams, job.last_step)
            optimizer.build(model.trainable_variables)
            variables = state_variables(model, optimizer)
            for name, value in first_state.items():
                variables[name].assign(value)
            states.append(copy_state(model, optimizer))
        self.hparams, self.model, self.optimizer = hparams, model, optimizer
        self.state = jax.tree.map(lambda *values: jnp.stack(values), *states)

    def compile(self, data: Sequence[Batch]) -> Step:
        """Compile the update of all seeds for every kind of batch, at the same time.

        The batches are those of `device_batches`. A step overwrites its state.
        """
        update = jax.vmap(make_update(self.model, self.optimizer, self.hparams))

        def step(
            state: TrainState, batches: Batch, number: jax.Array
        ) -> tuple[TrainState, jax.Array]:
            return update(
                state, {name: x[number].astype("int32") for name, x in batches.items()}
            )

        jitted = jax.jit(step, donate_argnums=0)
        used = [n for n, batches in enumerate(data) if len(batches[TARGETS])]
        lowered = [jitted.lower(self.state, data[n], jnp.asarray(0)) for n in used]
        with ThreadPoolExecutor(len(used)) as threads:
            done = threads.map(lambda each: each.compile(), lowered)
            compiled = dict(zip(used, done, strict=True))
        return lambda state, kind, number: compiled[kind](
            state, data[kind], jnp.asarray(number)
        )

    def dev_nll(self, dev: Batch) -> Likelihood:
        """Make the function that measures the nll of dev, compiled by its first call.

        Args:
            dev: Pairs, int32 `[pairs, length]` per side.

        Returns:
            A function from the weights of all seeds to nats per target token, float32
            `[seeds]`, as `evaluation.development` measures them.
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

    def branch_weights(self, trainable: Weights) -> Arrays:
        """Return kappa and alpha of all seeds, `[seeds, branches]`, by name."""
        pairs = zip(self.model.trainable_variables, trainable, strict=True)
        return {
            f"branches/{variable.path}": np.asarray(values)
            for variable, values in pairs
            if variable.name in ("kappa", "alpha")
        }


def device_batches(corpus: Corpus, job: Job) -> list[Batch]:
    """Put the batches of each kind on the device, of which there may be none.

    Features are uint16 `[batches, seeds, rows, length]`.
    """
    data = []
    for kind in range(len(corpus.kinds)):
        count = int(np.sum(corpus.order[: job.updates] == kind))
        of_seeds = [corpus.batches(seed, kind, count) for seed in job.seeds]
        stacked = jax.tree.map(lambda *x: np.stack(x, axis=1), *of_seeds)
        data.append(jax.device_put(stacked))
    return data


def train(
    job: Job,
    seeds: SeedTraining,
    step: Step,
    dev_nll: Likelihood,
    kinds: Sequence[int],
    say: Callable[[str], Any],
) -> tuple[Arrays, dict[str, Weights], float]:
    """Train all seeds, and average their last weights.

    Args:
        job: The job.
        seeds: The training, whose state becomes that after the last update.
        step: Its step, compiled.
        dev_nll: Its nll of dev.
        kinds: Kind of each update's batch.
        say: Called with the first and every tenth measurement as text.

    Returns:
        The measurements, see `Outcome.arrays`; the weights of each system; and the time
        of the updates.
    """
    state, averaged, losses = seeds.state, [], []
    points: defaultdict[str, list[Any]] = defaultdict(list)
    used: Counter[int] = Counter()
    seconds, begin = 0.0, time.perf_counter()
    for number, kind in enumerate(kinds, start=1):
        state, loss = step(state, kind, used[kind])
        used[kind] += 1
        losses.append(loss)
        if number % job.measure_every:
            continue
        point = {"loss": np.asarray(jnp.mean(jnp.stack(losses), axis=0))}
        seconds += time.perf_counter() - begin
        point |= {"steps": job.first_step + number, "nll": dev_nll(state.trainable)}
        for name, value in (point | seeds.branch_weights(state.trainable)).items():
            points[name].append(value)
        losses = []
        if number > len(kinds) - job.average_last * job.measure_every:
            last = [x / job.average_last for x in state.trainable]
            averaged = jax.tree.map(jnp.add, averaged, last) if averaged else last
        if len(points["steps"]) % 10 == 1:
            loss, nll = (np.round(point[name], 3) for name in ("loss", "nll"))
            speed = f"{1e3 * seconds / number:.2f} ms per step"
            say(f"step {point['steps']}, {speed}, loss {loss}, dev nll {nll}")
        begin = time.perf_counter()
    seeds.state = state
    measured = {name: np.array(values) for name, values in points.items()}
    return measured, {LAST: state.trainable, AVERAGED: averaged}, seconds
