"""The figures of a comparison with CTranslate2, and their limits; no TensorFlow."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from t2t_repro.errors import UserError
from t2t_repro.export.ctranslate2_variants import QUANTIZATIONS, Tolerance
from t2t_repro.text_tables import quantity


@dataclasses.dataclass(frozen=True)
class SearchParity:
    """Comparison of the translations of one beam size.

    Attributes:
        beam_size: Number of hypotheses per step; 1 is greedy search.
        equal: Number of sentences with the same best translation.
        mean_score_difference: Mean over the sentences of the absolute difference
            between CTranslate2's score of its best translation and the trained model's
            score of the same ids, in nats.
        largest_score_difference: Largest of these differences.
    """

    beam_size: int
    equal: int
    mean_score_difference: float
    largest_score_difference: float


@dataclasses.dataclass(frozen=True)
class Parity:
    """How far a CTranslate2 model differs from the trained model.

    Both sides count no probability of PAD.

    Attributes:
        sentences: Number of sentences that were compared.
        tokens: Number of tokens of the trained model's greedy translations, with EOS.
        mean_difference: Mean over these tokens of the absolute difference of their
            log-probabilities, in nats.
        largest_difference: Largest of these differences.
        pad_log_probability: Largest increase of a translation's log-probability because
            PAD has no probability in CTranslate2, in nats.
        searches: Comparison of the translations: greedy ones, then those of the beam.
    """

    sentences: int
    tokens: int
    mean_difference: float
    largest_difference: float
    pad_log_probability: float
    searches: tuple[SearchParity, ...]

    def values(self) -> dict[str, Any]:
        """Return the figures for a JSON file."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """Return the figures as text."""
        searched = [
            f"{_search_name(search.beam_size)}: {search.equal} of {self.sentences} "
            "translations equal, scores differ by "
            f"{search.mean_score_difference:.1e} on average, "
            f"{search.largest_score_difference:.1e} at most"
            for search in self.searches
        ]
        return [
            f"log-probabilities of {quantity(self.tokens, 'token')}: differ by "
            f"{self.mean_difference:.1e} on average, {self.largest_difference:.1e} at "
            "most",
            *searched,
        ]

    def check(self, quantization: str) -> None:
        """Refuse a model that differs more than its format explains.

        Args:
            quantization: Format of the weights.

        Raises:
            UserError: If it differs more; the message gives figures and limits.
        """
        limits = QUANTIZATIONS[quantization]
        beyond = [*_beyond(self, limits)]
        if beyond:
            raise UserError(
                f"the CTranslate2 model with {quantization} weights differs too much "
                "from the trained model, so nothing was written: "
                f"{'; '.join(beyond)}.\n"
                "Choose another quantization, or other sentences to compare, such as "
                "some that the model translates well."
            )


def _search_name(beam_size: int) -> str:
    return "greedy search" if beam_size == 1 else f"beam of {beam_size}"


def _beyond(parity: Parity, limits: Tolerance) -> list[str]:
    """Return a phrase for every figure beyond its limit; NaN is beyond, too."""
    greedy = parity.searches[0]
    least = math.floor(limits.equal * parity.sentences)
    found = []
    if not parity.mean_difference <= limits.mean:
        found.append(
            f"log-probabilities of tokens differ by {parity.mean_difference:.1e} on "
            f"average, expected at most {limits.mean:.0e}"
        )
    if not parity.largest_difference <= limits.largest:
        found.append(
            f"the log-probability of a token differs by "
            f"{parity.largest_difference:.1e}, expected at most {limits.largest:.0e}"
        )
    if greedy.equal < least:
        found.append(
            f"{greedy.equal} of {parity.sentences} greedy translations are equal, "
            f"expected at least {least}"
        )
    return found
