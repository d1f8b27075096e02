"""Word alignments from the attention of a trained system."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Iterator, Sequence

from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.alignments import (
    AlignmentHeads,
    Link,
    align,
    choose_heads,
)
from t2t_repro.features.attention_view.attention import Attention
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import is_blank

logger = logging.getLogger(__name__)

DEV_PAIRS = 100


def choose_alignment_heads(
    system: System, data: PreparedData, pairs: int = DEV_PAIRS
) -> AlignmentHeads:
    """Choose the heads that align words best on dev data; see `choose_heads`.

    Args:
        system: A trained system.
        data: Prepared data of the system's problem.
        pairs: Number of dev sentence pairs to use.

    Raises:
        UserError: If there is no dev split, or the model can read no pair of it.
    """
    if "dev" not in data.splits:
        raise UserError(
            "received no layer, expected one, because there is no dev split to choose "
            "heads by."
        )
    sources, references = data.raw_text("dev")
    captured: list[Attention] = []
    skipped = _Skipped()
    for line, (source, reference) in enumerate(
        zip(sources, references, strict=True), start=1
    ):
        if len(captured) == pairs:
            break
        try:
            captured.append(system.attention(source, reference))
        except UserError as error:
            skipped.add(line, error)
    skipped.log("dev pair", "used to choose heads")
    return choose_heads(captured)


def align_pairs(
    system: System,
    sources: Sequence[str],
    targets: Sequence[str] | None,
    heads: AlignmentHeads,
    decode_hparams: DecodeHParams | None = None,
    *,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[list[Link]]:
    """Yield the links between the words of each source and its target.

    A pair that the model cannot read, because it is empty or too long, has no links.
    A warning at the end counts such pairs by reason; blank lines are not counted.

    Args:
        system: A trained system.
        sources: Sources.
        targets: Their translations; None = the system's own.
        heads: Heads to align by.
        decode_hparams: Settings of the search for the system's translations.
        advance: Called with the number of pairs completed since the last call.
    """
    skipped = _Skipped()
    for number, source in enumerate(sources):
        target = None if targets is None else targets[number]
        try:
            attention = system.attention(source, target, decode_hparams)
        except UserError as error:
            if not (is_blank(source) and is_blank(target or "")):
                skipped.add(number + 1, error)
            yield []
        else:
            is_empty = len(attention.target.words) < 2  # EOS alone
            yield [] if is_empty else align(attention, heads)
        advance(1)
    skipped.log("line", "aligned")


@dataclasses.dataclass
class _Reason:
    """Why some pairs were skipped: the error of the first one, and their number."""

    first_line: int
    message: str
    count: int = 0


class _Skipped:
    """The pairs that a system cannot read, counted by reason."""

    def __init__(self) -> None:
        self._reasons: dict[str, _Reason] = {}

    def add(self, line: int, error: UserError) -> None:
        """Count a pair by its line, from 1, and its error."""
        message = str(error)
        # Errors of one kind differ in their numbers and quotations.
        kind = re.sub(r"\d[\d,]*|'[^']*'|\"[^\"]*\"", "", message)
        reason = self._reasons.setdefault(kind, _Reason(line, message))
        reason.count += 1

    def log(self, noun: str, use: str) -> None:
        """Warn of each reason, the most frequent first."""
        for reason in sorted(self._reasons.values(), key=lambda r: -r.count):
            pairs = (
                f"{noun} {reason.first_line} is"
                if reason.count == 1
                else f"{reason.count:,} {noun}s (the first: {reason.first_line}) are"
            )
            logger.warning("%s not %s: %s", pairs, use, reason.message)
