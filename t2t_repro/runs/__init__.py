"""Use cases: train a model, load a trained system, translate, evaluate, export.

The names below are imported when they are first used, because most of them import
TensorFlow, and the command line must answer usage errors without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from t2t_repro import features

if TYPE_CHECKING:
    from t2t_repro.decoding.hypothesis import RankedHypothesis, rank
    from t2t_repro.features.ctranslate2.ctranslate2_system import CTranslate2System
    from t2t_repro.features.ensembles.ensemble_training import train_ensemble
    from t2t_repro.features.ensembles.members import load_ensemble
    from t2t_repro.runs.run import Run
    from t2t_repro.runs.run_checkpoints import average
    from t2t_repro.runs.run_training import TrainResult, train
    from t2t_repro.runs.scoring import PairScore
    from t2t_repro.runs.system import System
    from t2t_repro.runs.translating_system import Evaluation, TranslatingSystem
    from t2t_repro.settings.decode_hparams import DecodeHParams
    from t2t_repro.settings.train_settings import TrainSettings

__all__ = [
    "CTranslate2System",
    "DecodeHParams",
    "Evaluation",
    "PairScore",
    "RankedHypothesis",
    "Run",
    "System",
    "TrainResult",
    "TrainSettings",
    "TranslatingSystem",
    "average",
    "load_ensemble",
    "rank",
    "train",
    "train_ensemble",
]

_MODULES = {
    "DecodeHParams": "t2t_repro.settings.decode_hparams",
    "Evaluation": "t2t_repro.runs.translating_system",
    "PairScore": "t2t_repro.runs.scoring",
    "RankedHypothesis": "t2t_repro.decoding.hypothesis",
    "Run": "t2t_repro.runs.run",
    "System": "t2t_repro.runs.system",
    "TrainResult": "t2t_repro.runs.run_training",
    "TrainSettings": "t2t_repro.settings.train_settings",
    "TranslatingSystem": "t2t_repro.runs.translating_system",
    "average": "t2t_repro.runs.run_checkpoints",
    "rank": "t2t_repro.decoding.hypothesis",
    "train": "t2t_repro.runs.run_training",
}
# Names of features, and the module in the feature's folder.
_OF_FEATURES = {
    "CTranslate2System": ("ctranslate2", "ctranslate2_system"),
    "load_ensemble": ("ensembles", "members"),
    "train_ensemble": ("ensembles", "ensemble_training"),
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Import a name of `__all__`."""
    if name in _OF_FEATURES:
        return getattr(features.load(*_OF_FEATURES[name]), name)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
