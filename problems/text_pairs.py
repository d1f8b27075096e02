"""Translation between two of the user's own texts."""

from __future__ import annotations

from t2t_repro.data.file_problem import TextPairProblem
from t2t_repro.registry import register_problem


@register_problem
class TextPairs(TextPairProblem):
    """Your own text: two files per split, line by line, or one TSV."""
