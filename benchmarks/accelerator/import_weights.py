"""Put weights trained on JAX into a run that `t2t decode` can read; needs TensorFlow.

From the root of the checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.import_weights \
        --output_dir run --arrays trained --to trained_run
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tensorflow as tf

from benchmarks.accelerator.arrays import (
    MODEL,
    Description,
    assign_arrays,
    read_state,
    state_variables,
)
from benchmarks.accelerator.program import exit_code
from t2t_repro.description_file import differences
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_folder
from t2t_repro.runs.run import Run, save_tokenizers
from t2t_repro.training.checkpoints import (
    model_variables,
    variables_by_path,
    write_checkpoint,
)
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.training_checkpoints import random_states


def import_weights(
    output_dir: str | Path, arrays: str | Path, folder: str | Path
) -> str:
    """Write a run with trained weights, beside the run that its batches came from.

    With the state of the optimizer, `t2t train` can resume the new run. With weights
    alone it cannot, but `t2t decode` and `t2t evaluate` can read it.

    Args:
        output_dir: Folder of the run that was exported. It is not changed.
        arrays: Folder of arrays that the training run wrote.
        folder: Folder of the new run, which must not exist.

    Returns:
        The path of the checkpoint.

    Raises:
        UserError: If the arrays are of another run or model, or are damaged, or
            the new folder exists.
    """
    new = Path(folder)
    if new.exists():
        raise UserError(f"{new} exists: give the name of a new folder.")
    run = Run.load_existing(output_dir)
    run.load_catalogue()
    tokenizers = run.load_tokenizers(output_dir)
    model = run.build_model(*tokenizers)
    description = Description.load(Path(arrays))
    _check_same_training(run, model.tie_embeddings, description)
    optimizer = make_optimizer(run.hparams, run.training.get("train_steps", 0))
    optimizer.build(model.trainable_variables)
    state = read_state(Path(arrays))
    variables = state_variables(model, optimizer)
    checkpoint = {
        **model_variables(model),
        "optimizer": variables_by_path(optimizer.variables),
        "random": random_states(model),
        "data": {
            "epoch": tf.Variable(description.epoch, dtype=tf.int64),
            "batches": tf.Variable(description.batches, dtype=tf.int64),
        },
    }
    if all(name.startswith(f"{MODEL}/") for name in state):
        variables = {k: v for k, v in variables.items() if k.startswith(f"{MODEL}/")}
        checkpoint = model_variables(model)
    assign_arrays(variables, state)
    with atomic_folder(new) as incomplete:
        run.save(incomplete)
        save_tokenizers(incomplete, *tokenizers)
        path = write_checkpoint(checkpoint, incomplete, description.step)
    return str(new / Path(path).name)


def _check_same_training(
    run: Run, tie_embeddings: bool, description: Description
) -> None:
    """Refuse arrays of another training run, whose shapes may be the same.

    Raises:
        UserError: If the problem, the data or an hparam differs.
    """
    expected = {
        **run.hparams.values(),
        "shared_embedding_and_softmax_weights": tie_embeddings,
        "problem": run.problem,
        "data_digest": run.data_digest,
    }
    found = {
        **description.hparams.values(),
        "problem": description.problem,
        "data_digest": description.data_digest,
    }
    different = differences(found, expected)
    if different:
        raise UserError(f"the arrays do not belong to the run: {'; '.join(different)}.")


def run(args: argparse.Namespace) -> None:
    """Import weights, and print where they are."""
    path = import_weights(args.output_dir, args.arrays, args.to)
    print(f"{path}: `t2t decode --output_dir {args.to}` reads it")


def main() -> int:
    """Import weights; return 0, or 1 after an error of the user."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output_dir", required=True, help="run that was exported")
    parser.add_argument("--arrays", required=True, help="folder of trained arrays")
    parser.add_argument("--to", required=True, help="folder of the new run")
    args = parser.parse_args()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
