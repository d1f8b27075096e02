"""Lines that `t2t decode` writes, and its summary."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_repro.decoding.hypothesis import Hypothesis, count_repairs
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import as_line, is_blank
from t2t_repro.text_tables import quantity

if TYPE_CHECKING:
    from t2t_repro.runs import RankedHypothesis

logger = logging.getLogger(__name__)

DECIMALS = 6


def text_line(hypotheses: Sequence[Hypothesis], hparams: DecodeHParams) -> str:
    """Format a sentence's hypotheses as tensor2tensor does, separated by tabs.

    With several columns, a tab inside a translation becomes a space.
    """
    texts = [as_line(hypothesis.text) for hypothesis in hypotheses]
    if not (hparams.return_beams or hparams.write_beam_scores):
        return texts[0]
    cells = []
    for text, hypothesis in zip(texts, hypotheses, strict=True):
        cells.append(text.replace("\t", " "))
        if hparams.write_beam_scores:
            cells.append(f"{hypothesis.score:.4f}")
    return "\t".join(cells)


def json_line(number: int, hypotheses: Sequence[RankedHypothesis]) -> str:
    """Format a sentence's hypotheses as a JSON object on one line.

    Args:
        number: Number of the line, counted from 1.
        hypotheses: Its translations, best first.
    """
    found = [
        dataclasses.asdict(hypothesis)
        | {
            "score": _rounded(hypothesis.score),
            "log_prob": _rounded(hypothesis.log_prob),
        }
        for hypothesis in hypotheses
    ]
    return json.dumps({"line": number, "hypotheses": found}, ensure_ascii=False)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)


class Summary:
    """Counts of the outputs that a user should know about.

    Args:
        wanted: Number of hypotheses per sentence that the user asked for.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._outputs = self._too_few = 0
        self._repaired: list[Hypothesis] = []

    def add(self, source: str, hypotheses: Sequence[Hypothesis]) -> None:
        """Count the hypotheses of a sentence."""
        self._outputs += 1
        self._too_few += len(hypotheses) < self._wanted and not is_blank(source)
        self._repaired += [best for best in hypotheses[:1] if best.repairs]

    def log(self) -> None:
        """Log the number of repaired outputs, and of lines with too few hypotheses."""
        if self._repaired:
            repairs = count_repairs(self._repaired).items()
            logger.info(
                "repaired %d of %d: %s",
                len(self._repaired),
                self._outputs,
                ", ".join(f"{count} x {fault}" for fault, count in repairs),
            )
        if self._too_few:
            logger.info(
                "%d of %s have fewer than %d hypotheses: the search ended no "
                "more of them within the length limit (extra_length)",
                self._too_few,
                quantity(self._outputs, "line"),
                self._wanted,
            )
