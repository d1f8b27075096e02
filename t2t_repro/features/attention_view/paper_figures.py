"""The attention figures of "Attention Is All You Need", for any model.

Figure 3: the heads of one layer at one word. Figure 4: two heads, all their lines, and
then their lines at one word. Figure 5: two heads of one layer. As in the paper, the
layer is the last but one (layer 5 of 6) unless another is given. The paper does not say
how its heads were chosen; here the heads with the highest score are the default:

- figure 4: the weight from the word to another word that is not beside it;
- figure 5: the same, in the mean over all words.

EOS does not count. Layers, heads and positions of words are counted from 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.panels import (
    Panel,
    draw_panels,
    figure_bytes,
    shown_word,
)
from t2t_repro.features.attention_view.sentence_attention import (
    EOS_SIGN,
    Attention,
    check_number,
    comparable,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_LAW = (
    "The Law will never be perfect , but its application should be just - this is what "
    "we are missing , in my opinion ."
)
# The sentences of the paper's figures as printed there; 4 and 5 show the same one.
PAPER_SENTENCES = {
    3: "It is in this spirit that a majority of American governments have passed new "
    "laws since 2009 making the registration or voting process more difficult .",
    4: _LAW,
    5: _LAW,
}
PAPER_WORDS = {3: ("making",), 4: ("its", "it")}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure to write to a file.

    Attributes:
        drawing: Its lines, boxes and words.
        description: Kind of attention, layer, heads and word.
    """

    drawing: Drawing
    description: str

    def to_svg(self) -> str:
        """Return an SVG document, whose words are in the fonts of its reader."""
        return figure_bytes(self.drawing, "svg", self.description).decode()

    def to_pdf(self) -> bytes:
        """Return a PDF document of one page with its fonts."""
        return figure_bytes(self.drawing, "pdf", self.description)

    def _repr_svg_(self) -> str:
        """Show the figure in a notebook."""
        return self.to_svg()


def figure_3(
    attention: Attention,
    *,
    kind: str = "encoder_self",
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    word: str | int | None = None,
) -> Figure:
    """Draw the attention of several heads at one word: long-distance dependencies.

    Args:
        attention: Attention of a sentence or sentence pair.
        kind: Kind of attention; see `AttentionMap`. "memory" draws lines from the words
            or brackets of the target to the words of the source.
        layer: Layer, from 1; by default the last but one.
        heads: Heads, from 1; by default all.
        word: Word that attends, or its position from 1; by default "making" and, in a
            sentence without it, the word with the most weight on distant words.

    Raises:
        UserError: If there is no such layer, head or word.
    """
    shown = _Shown.of(attention, kind, layer)
    chosen = shown.check_heads(heads) or list(range(len(shown.weights)))
    query = shown.find(word, PAPER_WORDS[3], chosen)
    return _figure(shown, chosen, [shown.panel(chosen, query)])


def figure_4(
    attention: Attention,
    *,
    kind: str = "encoder_self",
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    word: str | int | None = None,
) -> Figure:
    """Draw two heads completely, and then both at one word: anaphora.

    Args:
        attention: Attention of a sentence or sentence pair.
        kind: See `figure_3`.
        layer: Layer, from 1; by default the last but one.
        heads: Heads, from 1; by default the two sharpest at the word.
        word: Word that attends, or its position from 1; by default "its" and, in a
            sentence without it, "it" or the word with the most weight on distant words.

    Raises:
        UserError: If there is no such layer, head or word.
    """
    shown = _Shown.of(attention, kind, layer)
    given = shown.check_heads(heads)
    query = shown.find(word, PAPER_WORDS[4], given or range(len(shown.weights)))
    chosen = given or _two_best(shown.distant[:, query].max(axis=-1))
    panels = [shown.panel([head]) for head in chosen]
    return _figure(shown, chosen, [*panels, shown.panel(chosen, query)])


def figure_5(
    attention: Attention,
    *,
    kind: str = "encoder_self",
    layer: int | None = None,
    heads: Sequence[int] | None = None,
) -> Figure:
    """Draw two heads of one layer, one panel each: heads that follow the structure.

    Args:
        attention: Attention of a sentence or sentence pair.
        kind: See `figure_3`.
        layer: Layer, from 1; by default the last but one.
        heads: Heads, from 1; by default the two with the most weight on words that are
            not neighbours.

    Raises:
        UserError: If there is no such layer or head.
    """
    shown = _Shown.of(attention, kind, layer)
    strongest = shown.distant.max(axis=-1).mean(axis=-1)
    chosen = shown.check_heads(heads) or _two_best(strongest)
    return _figure(shown, chosen, [shown.panel([head]) for head in chosen])


@dataclasses.dataclass(frozen=True)
class _Shown:
    """One layer of one kind of attention, between words.

    Attributes:
        title: Kind and layer.
        queries: Words that attend.
        keys: Words attended to.
        weights: `[head, query, key]`.
        same: Whether queries and keys are the same sentence.
    """

    title: str
    queries: list[str]
    keys: list[str]
    weights: np.ndarray
    same: bool

    @classmethod
    def of(cls, attention: Attention, kind: str, layer: int | None) -> _Shown:
        maps = {found.kind: found for found in attention.maps()}
        if kind not in maps:
            raise UserError(
                f"received the attention {kind!r}, expected one of {', '.join(maps)}."
            )
        found, sequences = maps[kind], attention.sequences()
        layers = len(found.weights)
        layer = max(1, layers - 1) if layer is None else layer
        check_number("layer", layer, layers)
        return cls(
            title=f"{found.label}, layer {layer} of {layers}",
            queries=sequences[found.queries].word_labels(),
            keys=sequences[found.keys].word_labels(),
            weights=attention.in_words(kind)[layer - 1],
            same=found.queries == found.keys,
        )

    @property
    def distant(self) -> np.ndarray:
        """Weights `[head, query, key]`; zero beside a word, on itself and on EOS."""
        weights = self.weights.copy()
        weights[..., [key == EOS_SIGN for key in self.keys]] = 0.0
        weights[:, [query == EOS_SIGN for query in self.queries]] = 0.0
        if self.same:
            words = np.arange(len(self.queries))
            weights *= np.abs(words[:, None] - words) > 1
        return weights

    def check_heads(self, heads: Sequence[int] | None) -> list[int]:
        """Return heads counted from 0, or [] if none are given."""
        for head in heads or ():
            check_number("head", head, len(self.weights))
        return [head - 1 for head in heads or ()]

    def find(
        self, word: str | int | None, usual: Sequence[str], heads: Sequence[int]
    ) -> int:
        """Return the index of a given word, of a usual one, or of the best one.

        The best one is the word with the most weight on distant words, in the mean over
        the heads.

        Raises:
            UserError: If there is no such word.
        """
        words = list(map(comparable, self.queries))
        for name in usual if word is None else ():
            if name in words:
                return words.index(name)
        if word is None:
            return int(self.distant[list(heads)].sum(axis=-1).mean(axis=0).argmax())
        if word in self.queries:
            return self.queries.index(str(word))
        if comparable(str(word)) in words and isinstance(word, str):
            return words.index(comparable(word))
        position = int(word) if str(word).isdecimal() else 0
        if 1 <= position <= len(words):
            return position - 1
        raise UserError(
            f"received word {word!r}, expected a position from 1 to {len(words)} or "
            f"one of the words: {' '.join(self.queries)}"
        )

    def panel(self, heads: Sequence[int], query: int | None = None) -> Panel:
        """Return a panel of some heads."""
        return Panel(heads, self.weights[list(heads)], self.queries, self.keys, query)


def _figure(shown: _Shown, heads: Sequence[int], panels: Sequence[Panel]) -> Figure:
    names = ", ".join(str(head + 1) for head in heads)
    description = f"{shown.title}, {'heads' if len(heads) > 1 else 'head'} {names}"
    words = {shown.queries[p.query] for p in panels if p.query is not None}
    if words:
        description += f", at {shown_word(words.pop())!r}"
    return Figure(draw_panels(panels, shown.title), description)


def _two_best(scores: np.ndarray) -> list[int]:
    """Return the two heads with the highest scores, in the order of the heads."""
    return sorted(np.argsort(-scores, kind="stable")[:2].tolist())
