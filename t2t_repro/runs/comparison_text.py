"""Sentences for the comparison of two forms of a trained model."""

from __future__ import annotations

from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.features.synthetic.grammar import sentences as synthetic_sentences

COUNT = 100


def comparison_sentences(data_dir: str, problem: Problem) -> list[str]:
    """Return the first sources of a run's dev text.

    If the text no longer exists, return English sentences of the embedded grammar,
    which any tokenizer can encode.

    Args:
        data_dir: Folder of the run's prepared data.
        problem: The run's problem.

    Returns:
        At most `COUNT` sentences.
    """
    try:
        sources, _ = PreparedData.load(data_dir, problem).raw_text("dev")
    except UserError:
        sources = [drawn.english for drawn in synthetic_sentences("dev", COUNT)]
    return sources[:COUNT]
