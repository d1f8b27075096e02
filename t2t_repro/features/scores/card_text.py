"""The score card as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from t2t_repro.features.scores.card import DEFINITION, ScoreCard, ScoredSentence
from t2t_repro.features.scores.corpus_scores import NamedScore
from t2t_repro.text_tables import aligned, printable

WIDTH = 100
LONGEST_TEXT = 300  # characters shown of a sentence
_BAR = 30
_LABEL = 11  # columns of the name of a text
_INDENT = "  "


def card_lines(card: ScoreCard) -> list[str]:
    """Return the lines of a score card, of at most `WIDTH` columns."""
    sections = [
        ("Scores", _score_lines(card.scores)),
        ("Outputs", _output_lines(card)),
        (f"By {card.length_of} length, in words", _length_lines(card)),
        (f"Words by frequency in {card.counted_in}", _frequency_lines(card)),
        ("Sentences by chrF2", _histogram_lines(card)),
        ("Worst sentences by chrF2", _example_lines(card.worst)),
        ("Best sentences by chrF2", _example_lines(card.best)),
    ]
    lines = []
    for title, body in sections:
        if body:
            lines += ["", title, *(f"{_INDENT}{line}" for line in body)]
    return lines[1:]


def shortened(text: str) -> str:
    """Return the beginning of a long text, with the number of characters left out."""
    if len(text) <= LONGEST_TEXT:
        return text
    left_out = len(text) - LONGEST_TEXT
    return f"{text[:LONGEST_TEXT]}... ({left_out:,} more characters)"


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with `digits` decimals, or "-" for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def output_rows(card: ScoreCard) -> list[tuple[str, str]]:
    """Return labelled counts of outputs, for people."""
    faults = card.faults
    ratio = (
        f"{number(card.length_ratio, 3)} ({card.hypothesis_words:,} words / "
        f"{card.reference_words:,} in the references)"
    )
    rows = [("sentences", f"{card.sentences:,}"), ("length ratio", ratio)]
    if faults.copies is not None:
        copies = _counts(faults.copies, faults.copies_in_references)
        rows.append(("copies of the source", copies))
    return [
        *rows,
        ("empty", _counts(faults.empty, faults.empty_references)),
        ("with a repetition loop", _counts(faults.loops, faults.loops_in_references)),
        ("equal to the reference", f"{faults.identical:,}"),
    ]


def _counts(hypotheses: int, references: int | None) -> str:
    return f"{hypotheses:,} (references: {references:,})"


def _score_lines(scores: Sequence[NamedScore]) -> list[str]:
    label_width = max(len(score.label) for score in scores)
    lines = []
    for score in scores:
        head = f"{score.label:{label_width}}  {number(score.value):>6}  "
        text = textwrap.wrap(score.meaning, WIDTH - len(_INDENT) - len(head))
        lines.append(f"{head}{text[0]}")
        lines += [f"{' ' * len(head)}{line}" for line in text[1:]]
        lines.append(f"{_INDENT}{score.signature or score.missing}")
    return lines


def _output_lines(card: ScoreCard) -> list[str]:
    definition = textwrap.wrap(f"A loop is {DEFINITION}.", WIDTH - len(_INDENT))
    return [*aligned(output_rows(card)), *definition]


def _length_lines(card: ScoreCard) -> list[str]:
    bleu = f"BLEU {card.tokenizer}"
    rows = [("words", "sentences", bleu, "chrF2", "length ratio", "")]
    rows += [
        (
            band.label,
            f"{band.sentences:,}",
            number(band.bleu),
            number(band.chrf),
            number(band.length_ratio),
            _bar(band.bleu / 100),
        )
        for band in card.by_length
    ]
    return aligned(rows, right=range(5))


def _frequency_lines(card: ScoreCard) -> list[str]:
    if not card.by_frequency:
        return []
    rows = [("frequency", "in references", "recall %", "precision %", "")]
    rows += [
        (
            band.label,
            f"{band.in_references:,}",
            number(band.recall, 1),
            number(band.precision, 1),
            _bar((band.recall or 0) / 100),
        )
        for band in card.by_frequency
    ]
    return aligned(rows, right=range(4))


def _histogram_lines(card: ScoreCard) -> list[str]:
    counts = card.chrf_histogram
    step = 100 // len(counts)
    rows = [("chrF2", "sentences", "")]
    rows += [
        (f"{n * step}-{(n + 1) * step}", f"{count:,}", _bar(count / max(counts)))
        for n, count in enumerate(counts)
    ]
    return aligned(rows, right=range(2))


def _bar(share: float) -> str:
    """Return a bar of up to `_BAR` columns; any positive share is visible."""
    length = round(min(share, 1) * _BAR)
    return "#" * (max(length, 1) if share > 0 else 0)


def _example_lines(examples: Sequence[ScoredSentence]) -> list[str]:
    lines = []
    for example in examples:
        lines.append(
            f"line {example.line}: chrF2 {example.chrf:.1f}, BLEU {example.bleu:.1f}"
        )
        for label, text in example.texts():
            room = WIDTH - 2 * len(_INDENT) - _LABEL
            first, *more = wrapped(printable(shortened(text)), room)
            lines.append(f"{_INDENT}{label:{_LABEL}}{first}")
            lines += [f"{' ' * (len(_INDENT) + _LABEL)}{line}" for line in more]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines by their width on a terminal, at spaces if possible.

    Args:
        text: Printable text.
        width: Columns; Chinese characters and most emoji take two.

    Returns:
        At least one line; an empty text is shown as "(empty)".
    """
    from rich.console import Console
    from rich.text import Text

    words = " ".join(text.split())
    lines = Text(words).wrap(Console(width=width), width)
    return [line.plain.rstrip() for line in lines] if words else ["(empty)"]
