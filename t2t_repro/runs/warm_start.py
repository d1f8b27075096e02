"""Begin training with the weights of another run; tensor2tensor `warm_start_from`.

Differs from tensor2tensor (`t2t_model.py: initialize_from_ckpt`), which takes weights
of equal names and fails on other shapes: rows of embeddings are taken by their piece of
the vocabulary, and every weight that is not taken is reported with its reason.

This module imports no TensorFlow before it reads a checkpoint.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.runs.run_checkpoints import choose_checkpoint
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import SIDES
from t2t_repro.training.checkpoint_paths import find_checkpoint

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

logger = logging.getLogger(__name__)


# Embedding -> side of its vocabulary, and embeddings of a checkpoint to read it from,
# the first one that exists. A run has one shared matrix, or three.
_SOURCES = {
    "shared_embedding": ("targets", ("shared_embedding", "target_embedding")),
    "source_embedding": ("inputs", ("source_embedding", "shared_embedding")),
    "target_embedding": ("targets", ("target_embedding", "shared_embedding")),
    "softmax": ("targets", ("softmax", "shared_embedding")),
}
_SHOWN = 3  # names of weights in a line


class TakenRows(NamedTuple):
    """Rows of an embedding that were taken from another vocabulary's embedding.

    Attributes:
        rows: Number of rows of pieces that both vocabularies have.
        of: Number of rows of the embedding.
    """

    rows: int
    of: int


@dataclasses.dataclass
class WarmStart:
    """The weights that a model takes from a checkpoint.

    Attributes:
        checkpoint: Path of the checkpoint.
        taken: Paths of the weights that were taken as they are.
        rows: Embeddings of which some rows were taken, by path.
        left: Reasons by path for the weights that keep their initial values.
        unused: Paths of the checkpoint's weights that the model does not have.
    """

    checkpoint: str
    taken: list[str] = dataclasses.field(default_factory=list)
    rows: dict[str, TakenRows] = dataclasses.field(default_factory=dict)
    left: dict[str, str] = dataclasses.field(default_factory=dict)
    unused: list[str] = dataclasses.field(default_factory=list)

    def take(self, path: str, variable: tf.Variable, value: np.ndarray) -> None:
        """Take a weight as it is if the shapes are equal."""
        shape = tuple(variable.shape)
        if value.shape == shape:
            variable.assign(value)
            self.taken.append(path)
        else:
            there = list(value.shape)
            self.left[path] = f"shape {there} there and {list(shape)} here"

    def take_rows(
        self,
        path: str,
        variable: tf.Variable,
        value: np.ndarray,
        tokenizers: tuple[Tokenizer, Tokenizer],
    ) -> None:
        """Take the rows of the pieces that both vocabularies have."""
        width, width_there = variable.shape[1], value.shape[1]
        if width_there != width:
            self.left[path] = f"width {width_there} there and {width} here"
            return
        shared = shared_pieces(*tokenizers)
        table = variable.numpy()
        for here, there in shared:
            table[here] = value[there]
        variable.assign(table)
        self.rows[path] = TakenRows(len(shared), len(table))

    def lines(self) -> list[str]:
        """Describe the weights that were taken, those that were not, and why."""
        weights = len(self.taken) + len(self.rows) + len(self.left)
        lines = [
            f"warm start from {self.checkpoint}: {len(self.taken)} of {weights} "
            "weights taken; step 0, new optimizer"
        ]
        lines += [
            f"{path}: {rows:,} of {of:,} rows taken, whose pieces both vocabularies "
            "have; the others keep their initial values"
            for path, (rows, of) in self.rows.items()
        ]
        for reason in dict.fromkeys(self.left.values()):
            paths = [path for path, why in self.left.items() if why == reason]
            lines.append(f"not taken, {reason}: {_count_and_names(paths)}")
        if self.unused:
            lines.append(f"not in this model: {_count_and_names(self.unused)}")
        return lines


def warm_start(
    model: keras.Model,
    checkpoint: str,
    tokenizers: tuple[Tokenizer, Tokenizer],
    tokenizers_there: tuple[Tokenizer, Tokenizer],
) -> WarmStart:
    """Replace a model's initial weights by those of a checkpoint where they fit.

    Args:
        model: The model.
        checkpoint: Path of the checkpoint.
        tokenizers: Tokenizers of the model's inputs and targets.
        tokenizers_there: Tokenizers of the checkpoint's run.

    Returns:
        Description of the weights that were taken.

    Raises:
        UserError: If the checkpoint is damaged, or none of its weights fits.
    """
    from t2t_repro.training.checkpoints import read_values, variables_by_path

    values = read_values(checkpoint, "model")
    pairs = zip(SIDES, zip(tokenizers, tokenizers_there, strict=True), strict=True)
    other_vocabularies = {
        side: (here, there)
        for side, (here, there) in pairs
        if here.to_bytes() != there.to_bytes()
    }
    found = WarmStart(checkpoint)
    used: set[str] = set()
    for path, variable in variables_by_path(model.weights).items():
        side, source = _source_of(path, values)
        if source is None:
            found.left[path] = "missing in the checkpoint"
            continue
        used.add(source)
        if side in other_vocabularies:
            both = other_vocabularies[side]
            found.take_rows(path, variable, values[source], both)
        else:
            found.take(path, variable, values[source])
    if not found.taken and not found.rows:
        reason = next(iter(found.left.values()), "the model has no weights")
        raise UserError(
            f"received warm_start_from {checkpoint}, of which no weight fits this "
            f"model ({reason}): give a run of the same model with equal sizes."
        )
    found.unused = [path for path in values if path not in used]
    return found


def _source_of(
    path: str, values: Mapping[str, np.ndarray]
) -> tuple[str | None, str | None]:
    """Return the vocabulary's side of an embedding, and the weight to read it from."""
    *parents, name, leaf = ("", *path.split("/"))
    if leaf != "table" or name not in _SOURCES:
        return None, path if path in values else None
    side, names = _SOURCES[name]
    prefix = "/".join(part for part in parents if part)
    candidates = (f"{prefix}/{other}/{leaf}".removeprefix("/") for other in names)
    return side, next((found for found in candidates if found in values), None)


def shared_pieces(here: Tokenizer, there: Tokenizer) -> list[tuple[int, int]]:
    """Return the ids in both vocabularies of every piece that both have.

    Args:
        here: A tokenizer.
        there: Another tokenizer.

    Returns:
        Pairs of the id here and the id there, ascending by the first.
    """
    pieces, ids = (
        tokenizer.pieces(range(tokenizer.vocab_size)) for tokenizer in (here, there)
    )
    places = {piece: number for number, piece in enumerate(ids)}
    return [
        (number, places[piece])
        for number, piece in enumerate(pieces)
        if piece in places
    ]


def _count_and_names(paths: Sequence[str]) -> str:
    """Return the number of weights and the names of a few."""
    more = ", ..." if len(paths) > _SHOWN else ""
    return f"{len(paths)} weight(s) ({', '.join(paths[:_SHOWN])}{more})"


def find_source(warm_start_from: str) -> tuple[Path, str]:
    """Find the checkpoint to begin with; imports no TensorFlow.

    Args:
        warm_start_from: Folder of a run, whose checkpoint is chosen as for decoding, or
            path of a checkpoint in the folder of a run or in a folder inside.

    Returns:
        Folder of the run, and path of the checkpoint.

    Raises:
        UserError: If there is no such run or checkpoint.
    """
    path = Path(warm_start_from)
    if path.is_dir():
        Run.load_existing(path)
        return path, choose_checkpoint(path)
    checkpoint = find_checkpoint(path.parent, str(path))
    for folder in Path(checkpoint).parents[:2]:
        if (folder / RUN_FILE).is_file():
            return folder, checkpoint
    raise UserError(
        f"received warm_start_from={warm_start_from}, expected a checkpoint in the "
        f"folder of its run, whose {RUN_FILE} names its vocabulary."
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
    if begun != str(Path(settings.warm_start_from).resolve()):
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
    output_dir, checkpoint = find_source(warm_start_from)
    there = Run.load_existing(output_dir).load_tokenizers(output_dir)
    for line in warm_start(model, checkpoint, tokenizers, there).lines():
        logger.info("%s", line)
