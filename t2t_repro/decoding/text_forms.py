"""Conversion between the text of users and the text of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Self

from t2t_repro.data.problem import Output, Problem


def _as_written(source: str, written: str) -> Output:
    del source
    return Output(written)


@dataclasses.dataclass(frozen=True)
class TextForms:
    """Functions of a problem on the text of users and of the model.

    By default, they change nothing, and compare outputs as translations.

    Attributes:
        normalize_source: Maps a user's sentence to the form of the training sources.
        postprocess: Maps a source and the model's output to the output for the user.
        similarities: Compares outputs for the user; see `Problem.similarities`.
    """

    normalize_source: Callable[[str], str] = str
    postprocess: Callable[[str, str], Output] = _as_written
    similarities: Callable[[Sequence[str]], list[list[float]]] = Problem().similarities

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the forms of a problem."""
        return cls(problem.normalize_source, problem.postprocess, problem.similarities)


# Users write and read the text of the model.
MODEL_FORMS = TextForms()
