"""Conversion between the text of users and the text of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Self

from t2t_repro.data.problem import Output, Problem
from t2t_repro.errors import UserError


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
        consensus: Combines outputs for the user; None if the problem cannot.
    """

    normalize_source: Callable[[str], str] = str
    postprocess: Callable[[str, str], Output] = _as_written
    similarities: Callable[[Sequence[str]], list[list[float]]] = Problem().similarities
    consensus: Callable[[Sequence[str], Sequence[float]], str] | None = None

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the forms of a problem."""
        return cls(
            problem.normalize_source,
            problem.postprocess,
            problem.similarities,
            problem.consensus if problem.has_consensus else None,
        )

    def required_consensus(self) -> Callable[[Sequence[str], Sequence[float]], str]:
        """Return the function that combines outputs.

        Raises:
            UserError: If there is none.
        """
        if self.consensus is None:
            raise UserError(
                "received mbr_consensus=true, but the outputs of this problem cannot "
                "be combined: leave it out, so that mbr_scale chooses one of them."
            )
        return self.consensus


# Users write and read the text of the model.
MODEL_FORMS = TextForms()
