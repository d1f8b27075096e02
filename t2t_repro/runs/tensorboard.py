"""Write the parts of a run that TensorBoard shows besides its metrics."""

from __future__ import annotations

import keras

from t2t_repro.runs.run import Run
from t2t_repro.text import Tokenizer
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.visualization.hparams_tab import write_completion, write_hparams
from t2t_repro.visualization.projector import write_projector


def write_beginning(log: MetricsLog, run: Run) -> None:
    """Write what the user chose for a new run for the tab "HParams".

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
