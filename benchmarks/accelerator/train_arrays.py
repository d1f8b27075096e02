"""Train on exported batches with Keras's JAX backend; needs no TensorFlow.

From the root of the checkout:

    KERAS_BACKEND=jax PYTHONPATH=. python -m benchmarks.accelerator.train_arrays \
        --arrays arrays --to trained --dtype bfloat16
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import keras
import numpy as np

from benchmarks.accelerator.arrays import (
    MEBIBYTE,
    MODEL,
    Arrays,
    Batches,
    Description,
    arrays_of,
    assign_arrays,
    read_state,
    state_variables,
    write_folder,
)
from benchmarks.accelerator.jax_step import (
    assign_state,
    copy_state,
    make_step,
    require_jax,
)
from benchmarks.accelerator.measure import PRECISIONS
from benchmarks.accelerator.program import exit_code
from t2t_repro.errors import UserError
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.optimizer import make_optimizer


@dataclasses.dataclass
class Training:
    """A model and its optimizer at some step of a training run.

    Attributes:
        description: The training run at this step.
        model: The model.
        optimizer: Its optimizer, built.
    """

    description: Description
    model: keras.Model
    optimizer: keras.optimizers.Optimizer

    @classmethod
    def begin(cls, description: Description, state: Arrays, dtype: str) -> Training:
        """Build a training run.

        Args:
            description: The training run.
            state: Its arrays, or none for new weights from the training's seed.
            dtype: The hparam `activation_dtype`; weights are float32 in any case.

        Raises:
            UserError: If the arrays are of another model, or only of its weights.
        """
        if state and all(name.startswith(f"{MODEL}/") for name in state):
            raise UserError(
                "the state has weights alone, expected the optimizer too: an earlier "
                "call writes it with `--keep_optimizer`."
            )
        hparams = description.hparams.replace(activation_dtype=dtype)
        keras.utils.set_random_seed(description.random_seed)
        model = Transformer.from_hparams(
            hparams, description.source_vocab_size, description.target_vocab_size
        )
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
        if state:
            assign_arrays(state_variables(model, optimizer), state)
        return cls(description, model, optimizer)

    def train(
        self,
        batches: Batches,
        steps: int,
        report: Callable[[int, float], None],
        *,
        report_every: int = 100,
        deadline: float = math.inf,
    ) -> None:
        """Update the weights.

        Differs from `t2t train` if there are fewer batches than steps: they are used
        again in a new order, but no pair moves to another batch.

        Args:
            batches: Exported batches; the first is that of step 1 of this call.
            steps: Number of updates.
            report: Called with the step and its loss in nats per target token.
            report_every: Number of steps between two calls, which wait for the device.
            deadline: Value of `time.monotonic` after which no update begins.

        Raises:
            UserError: If the loss is not finite, or `steps` is less than 1.
        """
        if steps < 1:
            raise UserError(f"received steps={steps}, expected at least 1.")
        step = make_step(self.model, self.optimizer, self.description.hparams)
        state = copy_state(self.model, self.optimizer)
        first, done = self.description.step, 0
        while done < steps and time.monotonic() < deadline:
            number = batch_number(done, len(batches), self.description.random_seed)
            state, metrics = step(state, batches.batch(number))
            done += 1
            if done % report_every == 0 or done == steps:
                loss = float(metrics["loss"])
                if not math.isfinite(loss):
                    raise UserError(f"the loss is {loss} at step {first + done}.")
                report(first + done, loss)
        assign_state(self.model, self.optimizer, state)
        if done:
            epoch, position = map(int, batches.positions[min(done, len(batches)) - 1])
            self.description = dataclasses.replace(
                self.description, step=first + done, epoch=epoch, batches=position
            )


def batch_number(step: int, count: int, seed: int) -> int:
    """Return the number of the batch of a step.

    The first pass has the given order; each later one has a new order, drawn from the
    seed and the number of the pass.

    Args:
        step: Number of earlier updates.
        count: Number of batches.
        seed: Seed of the orders.
    """
    passes, position = divmod(step, count)
    if passes == 0:
        return position
    return int(np.random.default_rng([seed, passes]).permutation(count)[position])


def remaining(batches: Batches, exported: Description, state: Description) -> Batches:
    """Return the batches that a training run has not seen yet.

    Args:
        batches: The exported batches.
        exported: Description of the training run before the first of them.
        state: Description of the training run now.

    Raises:
        UserError: If all have been used, or the state is of an earlier step.
    """
    used = state.step - exported.step
    if not 0 <= used < len(batches):
        raise UserError(
            f"received a state of step {state.step}, expected one from "
            f"{exported.step} to {exported.step + len(batches) - 1}: the batches are "
            "those of the steps after these."
        )
    return Batches(
        batches.inputs[used:], batches.targets[used:], batches.positions[used:]
    )


def parse_flags() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arrays", type=Path, required=True, help="exported folder")
    parser.add_argument("--to", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--state",
        type=Path,
        help="folder that an earlier call wrote with --keep_optimizer, to continue it",
    )
    parser.add_argument(
        "--steps", type=int, default=0, help="updates; 0 = one for each batch"
    )
    parser.add_argument("--dtype", choices=PRECISIONS, default="bfloat16")
    parser.add_argument(
        "--keep_optimizer",
        action="store_true",
        help="write Adam's moments too, three times as many bytes, to train further",
    )
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="begin no step later than this"
    )
    parser.add_argument("--report_every", type=int, default=100)
    parser.add_argument("--mebibytes_per_file", type=int, default=15)
    return parser.parse_args()


def run(args: argparse.Namespace) -> None:
    """Train, and write the weights."""
    deadline = time.monotonic() + args.seconds
    require_jax()
    dtype, precision = PRECISIONS[args.dtype]
    exported, batches = Description.load(args.arrays), Batches.load(args.arrays)
    source = args.state or args.arrays
    description = Description.load(source)
    batches = remaining(batches, exported, description)
    training = Training.begin(description, read_state(source), dtype)
    started = time.monotonic()

    def report(step: int, loss: float) -> None:
        seconds = time.monotonic() - started
        print(f"step {step}  loss {loss:.3f}  {seconds:.0f} s", flush=True)

    with jax.default_matmul_precision(precision):
        training.train(
            batches,
            args.steps or len(batches),
            report,
            report_every=args.report_every,
            deadline=deadline,
        )
    state = arrays_of(state_variables(training.model, training.optimizer))
    if not args.keep_optimizer:
        state = {k: v for k, v in state.items() if k.startswith(f"{MODEL}/")}
    write_folder(
        args.to,
        training.description,
        state,
        bytes_per_file=args.mebibytes_per_file * MEBIBYTE,
    )
    print(f"{args.to}: weights of step {training.description.step}")


def main() -> int:
    """Train on arrays; return 0, or 1 after an error of the user."""
    args = parse_flags()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
