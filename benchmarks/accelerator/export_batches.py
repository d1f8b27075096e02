"""Export the state of a run and its next batches as arrays; needs TensorFlow.

The run's folder must exist: `t2t train --train_steps 1` makes it. From the root of the
checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.export_batches \
        --output_dir run --steps 1000 --to arrays
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from benchmarks.accelerator.arrays import (
    MEBIBYTE,
    Arrays,
    Batches,
    Description,
    arrays_of,
    state_variables,
    write_folder,
)
from benchmarks.accelerator.program import exit_code
from t2t_repro import catalogue
from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.data.pipeline import training_epoch
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.runs.run import Run
from t2t_repro.runs.trainer import make_trainer
from t2t_repro.training.checkpoint_paths import find_checkpoint, step_of
from t2t_repro.training.checkpoints import restore, variables_by_path
from t2t_repro.training.loop import Trainer
from t2t_repro.training.training_checkpoints import random_states


def export_run(
    output_dir: str | Path,
    steps: int,
    folder: str | Path,
    *,
    from_start: bool = False,
    bytes_per_file: int = 15 * MEBIBYTE,
) -> Description:
    """Write the state of a run at its latest checkpoint, and its next batches.

    Args:
        output_dir: Folder of the run. It is not changed.
        steps: Number of batches.
        folder: Folder to write; an earlier one is replaced.
        from_start: Whether to write no state, and the first batches of the run, for a
            training run that begins with its own weights.
        bytes_per_file: See `write_folder`.

    Returns:
        The description of the exported training.

    Raises:
        UserError: If the run, its checkpoint or its data cannot be used.
    """
    if steps < 1:
        raise UserError(f"received steps={steps}, expected at least 1.")
    run = Run.load_existing(output_dir)
    _check_run(run)
    run.load_catalogue()
    data = PreparedData.load(run.data_dir, catalogue.problem(run.problem))
    if data.digest != run.data_digest:
        raise UserError(f"the data in {run.data_dir} is not that of {output_dir}.")
    settings = run.train_settings(output_dir)
    trainer = make_trainer(run, settings, data, tf.distribute.get_strategy())
    step, epoch, done = (0, 0, 0) if from_start else _restore(trainer, output_dir)
    model = trainer.model
    description = Description(
        problem=run.problem,
        data_digest=run.data_digest,
        hparams=run.hparams.replace(
            shared_embedding_and_softmax_weights=model.tie_embeddings
        ),
        source_vocab_size=model.source_vocab_size,
        target_vocab_size=model.target_vocab_size,
        random_seed=run.random_seed,
        step=step,
        epoch=epoch,
        batches=done,
    )
    state = {} if from_start else arrays_of(state_variables(model, trainer.optimizer))
    batches = _batches(trainer, epoch, done, steps)
    write_folder(
        Path(folder), description, state, batches, bytes_per_file=bytes_per_file
    )
    return description


def _check_run(run: Run) -> None:
    """Refuse a run whose updates training on JAX does not make.

    Raises:
        UserError: If the run has several replicas or packed rows, or R-Drop begins
            later.
    """
    if run.num_replicas != 1:
        raise UserError(
            f"received a run of {run.num_replicas} replicas, expected one of 1: the "
            "training on JAX has one device."
        )
    if run.hparams.packed_length:
        raise UserError(
            f"received a run with packed_length={run.hparams.packed_length}, expected "
            "0: exported batches do not say which pair of a row a token belongs to."
        )
    if run.hparams.rdrop_after_steps:
        raise UserError(
            f"received a run with rdrop_after_steps={run.hparams.rdrop_after_steps}, "
            "expected 0: on JAX, every update has two passes, or none has."
        )


def _restore(trainer: Trainer, output_dir: str | Path) -> tuple[int, int, int]:
    """Restore the latest checkpoint; return its step, passes and batches."""
    path = find_checkpoint(output_dir, "latest")
    position = {
        name: tf.Variable(0, dtype=tf.int64, name=name) for name in ("epoch", "batches")
    }
    variables = {
        "model": variables_by_path(trainer.model.weights),
        "optimizer": variables_by_path(trainer.optimizer.variables),
        "random": random_states(trainer.model),
        "data": position,
    }
    restore(variables, path)
    epoch, done = (int(position[name].numpy()) for name in ("epoch", "batches"))
    return step_of(path), epoch, done


def _batches(trainer: Trainer, epoch: int, done: int, count: int) -> Batches:
    """Return the batches that the trainer would read next."""
    named = list(itertools.islice(_read_batches(trainer, epoch, done), count))
    sides = ([arrays[side] for _, arrays in named] for side in (INPUTS, TARGETS))
    positions = np.array([position for position, _ in named], dtype=np.int64)
    return Batches(*sides, positions)


def _read_batches(
    trainer: Trainer, epoch: int, done: int
) -> Iterator[tuple[tuple[int, int], Arrays]]:
    """Yield batches with the position after each one, pass after pass.

    Raises:
        UserError: If a pass has no batch.
    """
    while True:
        dataset = training_epoch(
            trainer.batches.data.shards,
            trainer.batches.data.plan,
            seed=trainer.options.seed,
            epoch=epoch,
            skip_batches=done,
        )
        before = done
        for batch in dataset.as_numpy_iterator():
            done += 1
            yield (epoch, done), batch
        if before == done == 0:
            raise UserError("no training pair is short enough for max_length.")
        epoch, done = epoch + 1, 0


def run(args: argparse.Namespace) -> None:
    """Export a run, and print what was written."""
    description = export_run(
        args.output_dir,
        args.steps,
        args.to,
        from_start=args.from_start,
        bytes_per_file=args.mebibytes_per_file * MEBIBYTE,
    )
    print(f"{args.to}: {args.steps} batches from step {description.step}")


def main() -> int:
    """Export a run; return 0, or 1 after an error of the user."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output_dir", required=True, help="folder of the run")
    parser.add_argument("--steps", type=int, required=True, help="number of batches")
    parser.add_argument("--to", required=True, help="folder to write")
    parser.add_argument(
        "--from_start",
        action="store_true",
        help="write no weights, and the run's first batches",
    )
    parser.add_argument(
        "--mebibytes_per_file", type=int, default=15, help="(default: %(default)s)"
    )
    args = parser.parse_args()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
