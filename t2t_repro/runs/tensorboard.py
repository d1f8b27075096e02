"""Write the hparams and the embeddings of a run for TensorBoard."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorboard.plugins.hparams import api, api_pb2
from tensorboard.plugins.hparams import summary as hparams_summary
from tensorboard.plugins.projector import ProjectorConfig
from tensorboard.plugins.projector.metadata import PROJECTOR_FILENAME

from t2t_repro.files import atomic_write
from t2t_repro.runs.run import Run
from t2t_repro.text import Tokenizer
from t2t_repro.training.metrics_file import EVAL_SPLIT, SPLITS, TRAIN_SPLIT
from t2t_repro.training.metrics_log import MetricsLog


def write_beginning(log: MetricsLog, run: Run) -> None:
    """Write the user's choices for a new run, for the tab "HParams".

    TensorBoard shows up to five settings before the scores, however many there are, and
    `hparams.json` has them all. The tab "Projector" is empty until the end.
    """
    chosen = {
        "hparams_set": run.hparams_set,
        "problem": run.problem,
        "random_seed": run.random_seed,
    }
    write_hparams(log, chosen | run.hparams.given())
    write_projector(log.output_dir, {})


def write_end(
    log: MetricsLog, model: keras.Model, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    """Mark a run as complete, and write its embeddings for the tab "Projector".

    Args:
        log: Log of the run.
        model: The trained `Transformer`.
        tokenizers: Tokenizers of the source and of the target.
    """
    sides = (model.source_embedding, model.target_embedding)
    # A matrix that both sides share is written once.
    named = {
        embedding.name: (embedding.table.numpy(), _entries(tokenizer))
        for embedding, tokenizer in zip(sides, tokenizers, strict=True)
    }
    write_projector(log.output_dir, named)
    write_completion(log)


def _entries(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.vocab_size))


def write_hparams(log: MetricsLog, values: Mapping[str, Any]) -> None:
    """Write the settings of a run when it starts.

    They are with the events of the evaluations. TensorBoard takes the last value of
    every metric there as the score of the run.

    Args:
        log: Log of the run, whose folder names its row of the table.
        values: Settings by name. Values other than numbers and truth values are shown
            as text.
    """
    path = log.output_dir.resolve()
    shown = {
        name: value if isinstance(value, (bool, int, float)) else str(value)
        for name, value in values.items()
    }
    with log.events(EVAL_SPLIT, 0):
        api.hparams(shown, trial_id=f"{path.parent.name}/{path.name}")


def write_completion(log: MetricsLog) -> None:
    """Mark a run as successful in the table.

    TensorBoard keeps the first mark, so a run that is to be resumed must have none.

    Args:
        log: Log of the run.
    """
    summary = hparams_summary.session_end_pb(api_pb2.STATUS_SUCCESS)
    with log.events(EVAL_SPLIT, 0):
        tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=0)


# The first ids of a byte-pair vocabulary are the most frequent. 5,000 rows of 512
# numbers take 21 MB, and the page computes its projections in seconds.
MAX_ROWS = 5000


def write_projector(
    output_dir: str | Path,
    embeddings: Mapping[str, tuple[np.ndarray, Sequence[str]]],
) -> None:
    """Write embeddings for the tab "Projector", replacing earlier ones.

    TensorBoard would add every matrix of the checkpoint that TensorFlow's file
    `checkpoint` names, without labels and with Adam's moments. So each folder that it
    looks into names an empty file as its checkpoint.

    The numbers have 4 significant digits. TensorBoard reads text as well as bytes, but
    takes bytes for text if they happen to be valid UTF-8.

    Args:
        output_dir: Folder of the run.
        embeddings: By name, such as "shared_embedding", the matrix `[vocab_size,
            hidden_size]` and the subword of each row. Rows after `MAX_ROWS` are left
            out.

    Raises:
        ValueError: If a matrix has not one row per subword.
    """
    # A folder with events, so that TensorBoard looks for the configuration.
    folder = Path(output_dir) / TRAIN_SPLIT
    folder.mkdir(parents=True, exist_ok=True)
    config = ProjectorConfig()
    for name, (matrix, subwords) in embeddings.items():
        if len(matrix) != len(subwords):
            raise ValueError(
                f"`embeddings` must have one subword per row. Received: {name!r} with "
                f"{len(matrix)} rows and {len(subwords)} subwords"
            )
        tensor, labels = f"{name}.tsv", f"{name}_subwords.tsv"
        atomic_write(folder / tensor, _tensor_text(matrix[:MAX_ROWS]))
        atomic_write(folder / labels, _label_text(subwords[:MAX_ROWS]))
        config.embeddings.add(
            tensor_name=name, tensor_path=tensor, metadata_path=labels
        )
    # Written last: it names files that must be complete.
    _write_config(folder, config)
    for other in (Path(output_dir), *(Path(output_dir) / split for split in SPLITS)):
        if other != folder and other.is_dir():
            _write_config(other, ProjectorConfig())


def _write_config(folder: Path, config: ProjectorConfig) -> None:
    config.model_checkpoint_path = os.devnull
    atomic_write(folder / PROJECTOR_FILENAME, text_format.MessageToString(config))


def _tensor_text(matrix: np.ndarray) -> str:
    text = io.StringIO()
    np.savetxt(text, matrix, fmt="%.4g", delimiter="\t")
    return text.getvalue()


def _label_text(subwords: Sequence[str]) -> str:
    """Return a table with a header. A subword must not end its cell or its line."""
    rows = (f"{_escape(text)}\t{number}" for number, text in enumerate(subwords))
    return "\n".join(["subword\tid", *rows]) + "\n"


def _escape(text: str) -> str:
    r"""Return a text with its control characters written as "\n" or "\u2028"."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
