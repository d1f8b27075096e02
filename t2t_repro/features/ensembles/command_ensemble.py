"""The flag of `t2t train` that trains an ensemble."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from t2t_repro.cli.flags import number_in_range
from t2t_repro.cli.loading import import_tensorflow_silently
from t2t_repro.data.problem import Problem
from t2t_repro.features.ensembles.ensemble_training import (
    prepare_ensemble,
    train_ensemble,
)
from t2t_repro.features.ensembles.members import (
    FEWEST_MEMBERS,
    MOST_MEMBERS,
    EnsembleFolder,
)
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.train_settings import TrainSettings

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs import TrainResult


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flag of an ensemble."""
    parser.add_argument(
        "--ensemble",
        metavar="N",
        type=number_in_range(FEWEST_MEMBERS, int, MOST_MEMBERS),
        help="train N models with the seeds random_seed, random_seed + 1, ... as an "
        "ensemble: at the same time on a CPU, one after the other on GPUs",
    )


@dataclasses.dataclass(frozen=True)
class EnsembleTrainer:
    """Trains the members of an ensemble; see `cli/train.py`.

    Attributes:
        settings: Settings of the ensemble.
        members: Number of models.
    """

    settings: TrainSettings
    members: int

    def check(self, problem: Problem) -> TrainingConfig:
        return prepare_ensemble(self.settings, self.members, problem)[0]

    def train(self, data: PreparedData) -> list[TrainResult]:
        return train_ensemble(
            self.settings,
            self.members,
            data,
            prepare_process=import_tensorflow_silently,
        )


def requested(
    args: argparse.Namespace, settings: TrainSettings
) -> EnsembleTrainer | None:
    """Return the trainer of the requested ensemble, or of the one in the folder."""
    recorded = EnsembleFolder.load(settings.output_dir)
    members = args.ensemble or (0 if recorded is None else recorded.members)
    return EnsembleTrainer(settings, members) if members else None
