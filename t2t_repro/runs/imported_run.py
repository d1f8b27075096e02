"""Make a run of a model that another program trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np

from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_folder, check_new_folder
from t2t_repro.runs.run import Run, describe_run, save_tokenizers
from t2t_repro.runs.system import System
from t2t_repro.runs.training_config import resolved_hparams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoint_paths import find_checkpoint
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.training_state import TrainingCheckpoints

Values = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class AdamState:
    """The state of Adam in a training run.

    Attributes:
        step: Number of completed updates.
        means: Mean of the gradients of each weight, by the path of the weight.
        squares: Mean of their squares.
    """

    step: int
    means: Values
    squares: Values


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportedModel:
    """A trained model in the terms of this package.

    Attributes:
        hparams_set: Registered set that its settings differ least from.
        hparams: Its changes to the set, "name=value,name=value".
        tokenizers: Tokenizers of the inputs and of the targets; one object twice if
            both sides share one.
        weights: Value of each weight of the model by its path, such as
            "transformer/softmax/table".
        problem: Registered problem that it was trained on.
        data: Its prepared data, or None. Then the first training on any data with
            the same tokenizers continues the run.
        adam: State of its optimizer, or None. Then training begins at step 0.
        t2t_usr_dir: Folder of the package that it needs, or None.
    """

    hparams_set: str
    hparams: str
    tokenizers: tuple[Tokenizer, Tokenizer]
    weights: Values
    problem: str = "text_pairs"
    data: PreparedData | None = None
    adam: AdamState | None = None
    t2t_usr_dir: str | None = None

    def run(self) -> Run:
        """Return the description of the run, without its tokenizers.

        Raises:
            UsageError: If the set is unknown or a change is refused.
        """
        step = 0 if self.adam is None else self.adam.step
        settings = TrainSettings(
            output_dir="",
            hparams_set=self.hparams_set,
            hparams=self.hparams,
            train_steps=max(step, 1),
            t2t_usr_dir=self.t2t_usr_dir,
        )
        hparams = resolved_hparams(settings)
        return describe_run(settings, hparams, self.problem, self.data)

    def build(self) -> keras.Model:
        """Return the model with its weights.

        Raises:
            UserError: If a weight is missing, has no place or another shape.
        """
        model = self.run().build_model(*self.tokenizers)
        _assign(model.weights, self.weights)
        return model


def write_run(
    imported: ImportedModel, output_dir: str | Path, model: keras.Model | None = None
) -> System:
    """Write the folder of a run, completely or not at all.

    Args:
        imported: The model.
        output_dir: Folder to create.
        model: Return value of `imported.build`, if it was called.

    Returns:
        The run's system.

    Raises:
        UserError: If the folder exists, or the weights do not fit the hparams.
    """
    check_new_folder(output_dir)
    run = imported.run()
    model = imported.build() if model is None else model
    optimizer = make_optimizer(run.hparams)
    optimizer.build(model.trainable_variables)
    if imported.adam is not None:
        _restore_adam(optimizer, model, imported.adam)
    with atomic_folder(Path(output_dir)) as folder:
        names = save_tokenizers(folder, *imported.tokenizers)
        run = dataclasses.replace(run, tokenizers=names)
        run.save(folder)
        checkpoints = TrainingCheckpoints(run.train_settings(folder), model, optimizer)
        checkpoints.save(int(optimizer.iterations.numpy()))
    return System.of_run(run, output_dir, find_checkpoint(output_dir))


def _assign(variables: list[keras.Variable], values: Values) -> None:
    """Give variables their values by path.

    Raises:
        UserError: If a value is missing, has no place or another shape.
    """
    shapes = {variable.path: tuple(variable.shape) for variable in variables}
    found = {path: tuple(value.shape) for path, value in values.items()}
    for path in sorted(shapes.keys() | found.keys()):
        if shapes.get(path) != found.get(path):
            raise UserError(
                f"the model has shape {found.get(path, 'none')} for {path}, expected "
                f"{shapes.get(path, 'none')}: it was trained with other settings or "
                "another vocabulary."
            )
    for variable in variables:
        variable.assign(values[variable.path])


def _restore_adam(
    optimizer: keras.optimizers.Optimizer, model: keras.Model, state: AdamState
) -> None:
    optimizer.iterations.assign(state.step)
    kinds = {"momentum": state.means, "velocity": state.squares}
    slots = {variable.path: variable for variable in optimizer.variables}
    for weight in model.trainable_variables:
        for kind, values in kinds.items():
            slot = f"{optimizer.name}/{weight.path.replace('/', '_')}_{kind}"
            slots[slot].assign(values[weight.path])
