"""Translation with the text of a data set of tensorflow-datasets."""

from __future__ import annotations

from t2t_repro.data.tfds_problems import TfdsTranslationProblem
from t2t_repro.registry import register_problem


@register_problem
class TranslateTfds(TfdsTranslationProblem):
    """A translation data set of tensorflow-datasets, named by --tfds."""
