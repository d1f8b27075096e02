"""Texts as sentences and the white space around them.

Sentences are found by `sentencex`, Wikimedia's library, which knows abbreviations and
quotes of many languages and keeps every character.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from sentencex import segment

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_UNUSUAL_SPACE = re.compile(r"[^\S \n]")
_DEFAULT_LANGUAGE = "en"  # of the rules for a text whose language is unknown


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a text.

    Attributes:
        text: The sentence, without white space around it.
        start: Index of its first character in the text.
        space: White space after it.
    """

    text: str
    start: int
    space: str


@dataclasses.dataclass(frozen=True)
class SegmentedText:
    """A text as sentences.

    Attributes:
        before: White space at the beginning of the text.
        sentences: The sentences, none of them blank.
    """

    before: str
    sentences: tuple[Sentence, ...]

    @classmethod
    def split(cls, text: str, language: str | None = None) -> SegmentedText:
        """Split a text at the ends of its sentences and lines.

        Args:
            text: Any text.
            language: Code of its language, such as "en", if it is known.
        """
        spans = list[tuple[int, int]]()
        at = 0
        for piece in _pieces(text, language or _DEFAULT_LANGUAGE):
            sentence = piece.strip()
            if sentence:
                start = at + piece.index(sentence)
                spans.append((start, start + len(sentence)))
            at += len(piece)
        starts = [*(start for start, _ in spans), len(text)]
        sentences = (
            Sentence(text[start:end], start, text[end:after])
            for (start, end), after in zip(spans, starts[1:], strict=True)
        )
        return cls(text[: starts[0]], tuple(sentences))

    def join(self, translations: Sequence[str]) -> str:
        """Return the text with each sentence replaced by its translation."""
        pairs = zip(translations, self.sentences, strict=True)
        return self.before + "".join(text + own.space for text, own in pairs)


def _pieces(text: str, language: str) -> Iterator[str]:
    """Yield the sentences of each line, with their white space."""
    for line in _LINES.findall(text):
        start = 0
        # sentencex 1.0 panics at some white space of several bytes.
        for piece in segment(language, _UNUSUAL_SPACE.sub(" ", line)):
            yield line[start : start + len(piece)]
            start += len(piece)
