"""Constituency parsing: trees as texts, and searches inside their grammar."""

from __future__ import annotations

from t2t_repro.features import Feature

FEATURE = Feature()
