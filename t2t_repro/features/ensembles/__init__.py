"""Ensembles: several models of one vocabulary, trained and loaded together."""

from __future__ import annotations

from t2t_repro.features import Feature

FEATURE = Feature(
    groups=("t2t_repro.features.ensembles.members",),
    trainers=("t2t_repro.features.ensembles.command_ensemble",),
)
