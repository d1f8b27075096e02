"""Word alignments from the attention of a trained system."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.visualization.alignments import (
    AlignmentHeads,
    Link,
    align,
    choose_heads,
)
from t2t_repro.visualization.attention import Attention

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
        UserError: If there is no dev split.
    """
    if "dev" not in data.splits:
        raise UserError(
            "received no layer, expected one, because there is no dev split to choose "
            "heads by."
        )
    sources, references = data.raw_text("dev")
    captured: list[Attention] = []
    for source, reference in zip(sources, references, strict=True):
        if len(captured) == pairs:
            break
        attention = _attention_or_none(system, source, reference)
        if attention is not None:
            captured.append(attention)
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

    Args:
        system: A trained system.
        sources: Sources.
        targets: Their translations; None = the system's own.
        heads: Heads to align by.
        decode_hparams: Settings of the search for the system's translations.
        advance: Called with the number of pairs completed since the last call.
    """
    for number, source in enumerate(sources):
        target = None if targets is None else targets[number]
        attention = _attention_or_none(system, source, target, decode_hparams)
        if attention is None:
            if source.strip():
                logger.warning("line %d is not aligned: too long or empty", number + 1)
            yield []
        else:
            is_empty = len(attention.target.words) < 2  # EOS alone
            yield [] if is_empty else align(attention, heads)
        advance(1)


def _attention_or_none(
    system: System,
    source: str,
    target: str | None,
    decode_hparams: DecodeHParams | None = None,
) -> Attention | None:
    """Return the attention of a pair, or None if the model cannot read it."""
    try:
        return system.attention(source, target, decode_hparams)
    except UserError:
        return None
