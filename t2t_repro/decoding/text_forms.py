"""Conversion between the text of users and the text of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Self

from t2t_repro.data.problem import Output, Problem


def _as_written(source: str, written: str) -> Output:
    del source
    return Output(written)


@dataclasses.dataclass(frozen=True)
class TextForms:
    """Functions that convert a user's text to the model's, and back.

    By default, they change nothing.

    Attributes:
        normalize_source: Maps a user's sentence to the form of the training sources.
        postprocess: Maps a source and the model's output to the output for the user.
    """

    normalize_source: Callable[[str], str] = str
    postprocess: Callable[[str, str], Output] = _as_written

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the forms of a problem."""
        return cls(problem.normalize_source, problem.postprocess)


# Users write and read the text of the model.
MODEL_FORMS = TextForms()
