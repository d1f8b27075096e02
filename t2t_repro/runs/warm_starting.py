"""Find the weights that a new run begins with, and load them."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.errors import UserError
from t2t_repro.runs.checkpoint_choice import choose_checkpoint
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import find_checkpoint

if TYPE_CHECKING:
    import keras

    from t2t_repro.text import Tokenizer

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class WarmStartSource:
    """The weights that a new run begins with.

    Attributes:
        output_dir: Folder of their run.
        checkpoint: Path of the checkpoint.
    """

    output_dir: Path
    checkpoint: str


def find_source(warm_start_from: str) -> WarmStartSource:
    """Find the checkpoint to begin with; imports no TensorFlow.

    Args:
        warm_start_from: Folder of a run, whose checkpoint is chosen as for decoding, or
            path of a checkpoint in the folder of a run or in a folder inside.

    Raises:
        UserError: If there is no such run or checkpoint.
    """
    path = Path(warm_start_from)
    if path.is_dir():
        Run.load_existing(path)
        return WarmStartSource(path, choose_checkpoint(path))
    checkpoint = find_checkpoint(path.parent, str(path))
    for folder in Path(checkpoint).parents[:2]:
        if (folder / RUN_FILE).is_file():
            return WarmStartSource(folder, checkpoint)
    raise UserError(
        f"received warm_start_from={warm_start_from}, expected a checkpoint in the "
        f"folder of its run, whose {RUN_FILE} names its vocabulary."
    )


def with_absolute_source(settings: TrainSettings) -> TrainSettings:
    """Return settings whose `warm_start_from` does not depend on the current folder."""
    if settings.warm_start_from is None:
        return settings
    return settings.replace(
        warm_start_from=str(Path(settings.warm_start_from).resolve())
    )


def check_warm_start(settings: TrainSettings, existing: Run | None) -> None:
    """Check the weights to begin with before TensorFlow is imported.

    Args:
        settings: Settings of the training run.
        existing: Run in its folder that has checkpoints, or None.

    Raises:
        UserError: If there is no such checkpoint, or the run has begun with other
            weights.
    """
    if settings.warm_start_from is None:
        return
    if existing is None:
        find_source(settings.warm_start_from)
        return
    begun = existing.training.get("warm_start_from")
    asked = with_absolute_source(settings).warm_start_from
    if begun != asked:
        origin = begun or "initial weights"
        raise UserError(
            f"received warm_start_from={settings.warm_start_from}, but the run in "
            f"{settings.output_dir} has checkpoints and began with {origin}: leave it "
            "out to resume that run, or train into another output_dir."
        )
    logger.info("warm_start_from is not read again: the run has checkpoints")


def begin_with(
    model: keras.Model, warm_start_from: str, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    """Replace the initial weights of a new run's model, and log which were taken.

    Args:
        model: The model.
        warm_start_from: See `find_source`.
        tokenizers: Tokenizers of the model's inputs and targets.

    Raises:
        UserError: If the checkpoint cannot be read, or none of its weights fits.
    """
    from t2t_repro.training.warm_start import warm_start

    source = find_source(warm_start_from)
    run = Run.load_existing(source.output_dir)
    there = run.load_tokenizers(source.output_dir)
    for line in warm_start(model, source.checkpoint, tokenizers, there).lines():
        logger.info("%s", line)
