"""Make our trainer of a new run, and read its batches."""

from __future__ import annotations

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import training_epoch
from t2t_repro.data.prepared import PreparedData
from t2t_repro.runs.run import Run
from t2t_repro.runs.trainer import make_trainer
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.cluster import make_strategy
from t2t_repro.training.loop import Trainer


def load_trainer(data_dir: str, settings: TrainSettings) -> Trainer:
    """Make the trainer of a new run."""
    catalogue.load()
    data = PreparedData.load(data_dir, catalogue.problem("text_pairs"))
    hparams = catalogue.hparams(settings.hparams_set).parse(settings.hparams)
    run = Run(
        problem=data.problem.name,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=hparams.resolved(),
        random_seed=settings.random_seed,
        num_replicas=1,
        data_dir=data_dir,
        data_digest=data.digest,
        usr_dir=None,
        tokenizers={},
    )
    return make_trainer(run, settings, data, make_strategy())


def epoch(trainer: Trainer, number: int) -> tf.data.Dataset:
    """Return the batches of an epoch."""
    data = trainer.batches.data
    return training_epoch(
        data.shards, data.plan, seed=trainer.options.seed, epoch=number
    )
