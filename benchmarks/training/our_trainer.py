"""Make our trainer of a new run, and read its batches."""

from __future__ import annotations

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import UpdateSize
from t2t_repro.data.pipeline import training_epoch
from t2t_repro.data.prepared import PreparedData
from t2t_repro.runs.devices import choose_xla
from t2t_repro.runs.run import describe_run
from t2t_repro.runs.run_training import make_trainer
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.cluster import make_strategy
from t2t_repro.training.loop import Trainer


def load_trainer(data_dir: str, settings: TrainSettings) -> Trainer:
    """Make the trainer of a new run."""
    catalogue.load()
    data = PreparedData.load(data_dir, catalogue.problem("text_pairs"))
    config = TrainingConfig.from_settings(settings, data.problem)
    strategy = make_strategy()
    config = config.replace(xla=choose_xla(config, strategy))
    run = describe_run(settings, config.hparams, data.problem.name, data)
    size = UpdateSize.of(config.hparams, strategy.num_replicas_in_sync)
    return make_trainer(config, run, data, strategy, size)


def epoch(trainer: Trainer, number: int) -> tf.data.Dataset:
    """Return the batches of an epoch."""
    data = trainer.batches.data
    return training_epoch(
        data.shards, data.plan, seed=trainer.settings.random_seed, epoch=number
    )
