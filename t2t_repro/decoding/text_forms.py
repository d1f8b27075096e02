"""The forms of text that users write and read, where a model's are others."""

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
    """Functions between a user's text and the model's; by default they change nothing.

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


MODEL_FORMS = TextForms()
