"""Word alignments from encoder-decoder attention.

A target word is linked to the source word with the most weight: in one head, or in the
mean over all heads of a layer. EOS is never linked. Two positions of the decoder know
about a target token: the position that predicts it, and the next one, which reads it.
Garg et al. (2019, "Jointly learning to align and translate") use the first, in the last
but one of six layers; Chen et al. (2020, "Accurate word alignment induction from neural
machine translation") found the second better. `head_choices` tries all of them, and
`association` chooses without reference alignments.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    Span,
    check_number,
    comparable,
    merge_words,
    spans_without_eos,
)
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import is_blank

logger = logging.getLogger(__name__)


ENOUGH_PAIRS = 50  # found the lowest error rate on the synthetic grammar

Link = tuple[int, int]  # source word, target word; both from 0
WordPair = tuple[str, str]


@dataclasses.dataclass(frozen=True, order=True)
class AlignmentHeads:
    """The weights that an alignment is read from.

    Attributes:
        layer: Layer of the decoder, from 1.
        heads: Heads, from 1, whose weights are averaged.
        reading: Whether a target token is linked by the position that reads it, instead
            of the position that predicts it.
    """

    layer: int
    heads: tuple[int, ...]
    reading: bool = False

    def __str__(self) -> str:
        noun = "head" if len(self.heads) == 1 else "heads"
        numbers = ", ".join(map(str, self.heads))
        position = "reads" if self.reading else "predicts"
        return f"layer {self.layer}, {noun} {numbers}, where it {position} the word"


def head_choices(layers: int, heads: int) -> list[AlignmentHeads]:
    """Return every head, and all heads of each layer, at both positions."""
    every = tuple(range(1, heads + 1))
    groups = [*((head,) for head in every), *([every] if heads > 1 else [])]
    return [
        AlignmentHeads(layer, group, reading)
        for layer in range(1, layers + 1)
        for reading in (False, True)
        for group in groups
    ]


def align(attention: Attention, chosen: AlignmentHeads) -> list[Link]:
    """Return one link per target word, in the order of the target.

    Args:
        attention: Attention of a sentence pair.
        chosen: The weights to use.

    Raises:
        UserError: If the model has no such layer or head, or the target has no words.
    """
    layers, heads = attention.memory.shape[:2]
    check_number("layer", chosen.layer, layers)
    for head in chosen.heads or [None]:
        check_number("head", head, heads)
    weights = _word_weights(attention, chosen)
    return [(int(word), index) for index, word in enumerate(weights.argmax(axis=-1))]


def pharaoh(links: Iterable[Link]) -> str:
    """Return links as a line such as "0-0 1-2": source word, target word, from 0."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def choose_heads(attentions: Sequence[Attention]) -> AlignmentHeads:
    """Choose the heads whose links join the same words again and again.

    No reference alignments are needed: see `association`. On the synthetic grammar,
    50 sentence pairs are enough to find the choice with the lowest error rate.

    Args:
        attentions: Sentence pairs, for example of the development data.

    Raises:
        UserError: If there are no sentence pairs.
    """
    if not attentions:
        raise UserError("received no sentence pairs, expected some to choose heads by.")
    if len(attentions) < ENOUGH_PAIRS:
        logger.warning(
            "choosing heads by only %d sentence pairs; %d or more are reliable",
            len(attentions),
            ENOUGH_PAIRS,
        )
    choices = head_choices(*attentions[0].memory.shape[:2])
    return max(
        choices,
        key=lambda chosen: association([_word_pairs(a, chosen) for a in attentions]),
    )


def association(linked: Sequence[Sequence[WordPair]]) -> float:
    """Return how well linked source words predict target words, in nats per link.

    The mean over all links of log p(target | source) / p(target), a pointwise mutual
    information. The counts for a link leave out its own sentence, so a pair that occurs
    once is not evidence; p(target) smooths them with the weight of one link.

    Args:
        linked: Linked words, source and target, of each sentence pair.
    """
    total = _Counts([pair for sentence in linked for pair in sentence])
    gain = 0.0
    for sentence in linked:
        own = _Counts(sentence)
        for pair in sentence:
            gain += _log_ratio(pair, total, own)
    return gain / max(1, total.links)


class _Counts:
    """Counts of linked words."""

    def __init__(self, pairs: Sequence[WordPair]) -> None:
        self.pairs = Counter(pairs)
        self.sources = Counter(source for source, _ in pairs)
        self.targets = Counter(target for _, target in pairs)
        self.links = len(pairs)


def _log_ratio(pair: WordPair, total: _Counts, own: _Counts) -> float:
    """Return log p(target | source) / p(target), counted without one sentence."""
    source, target = pair
    others = total.targets[target] - own.targets[target]
    prior = (others + 1) / (total.links - own.links + len(total.targets))
    together = total.pairs[pair] - own.pairs[pair]
    conditional = (together + prior) / (total.sources[source] - own.sources[source] + 1)
    return math.log(conditional / prior)


def _word_pairs(attention: Attention, chosen: AlignmentHeads) -> list[WordPair]:
    sources, targets = (
        [comparable(word) for word in sequence.word_labels()]
        for sequence in (attention.source, attention.target)
    )
    return [(sources[i], targets[j]) for i, j in align(attention, chosen)]


def _word_weights(attention: Attention, chosen: AlignmentHeads) -> np.ndarray:
    """Return the weights `[target word, source word]`, EOS left out."""
    words = spans_without_eos(attention.target)
    if not words:
        raise UserError(
            "received a translation without words, expected words to align: give the "
            "target."
        )
    if chosen.reading:
        words = [_readers(span, len(attention.target.tokens)) for span in words]
    heads = attention.memory[chosen.layer - 1, [head - 1 for head in chosen.heads]]
    return merge_words(heads.mean(axis=0), words, spans_without_eos(attention.source))


def _readers(span: Span, length: int) -> Span:
    """Return the positions that read a word; without EOS, nothing reads the last."""
    start, end = span
    return min(start + 1, length - 1), min(end + 1, length)


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


class _Skipped:
    """The pairs that a system cannot read, by the kind of their error."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[int, str]]] = {}

    def add(self, line: int, error: UserError) -> None:
        """Count a pair by its line, from 1, and its error."""
        # Errors of one kind differ in their numbers and quotations.
        kind = re.sub(r"\d[\d,]*|'[^']*'|\"[^\"]*\"", "", str(error))
        self._found.setdefault(kind, []).append((line, str(error)))

    def log(self, noun: str, use: str) -> None:
        """Warn of each kind by its first error, the most frequent first."""
        for pairs in sorted(self._found.values(), key=len, reverse=True):
            line, message = pairs[0]
            named = f"{len(pairs):,} {noun}s (the first: {line}) are"
            named = f"{noun} {line} is" if len(pairs) == 1 else named
            logger.warning("%s not %s: %s", named, use, message)
