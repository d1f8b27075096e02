"""The score card of translations as one self-contained HTML page without scripts."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from t2t_repro.features.scores.card import DEFINITION, ScoreCard, ScoredSentence
from t2t_repro.features.scores.card_text import number, output_rows, shortened
from t2t_repro.features.scores.corpus_scores import NamedScore
from t2t_repro.text_tables import printable, quantity


def card_page(card: ScoreCard, title: str, source_language: str | None = None) -> str:
    """Return a page that shows a score card.

    It needs no network, no script and no other file, and follows the reader's choice of
    light or dark. The texts may hold any characters and run in any direction.

    Args:
        card: The score card.
        title: Title of the page, such as the name of the system and of the data.
        source_language: Code of the language of the sources, if it is known.

    Returns:
        The text of an HTML file, to be written as UTF-8.
    """
    static = resources.files("t2t_repro.features.scores") / "static"
    languages = {
        "source": source_language,
        "reference": card.language,
        "output": card.language,
    }
    sections = [
        _section("Scores", _score_table(card.scores), "wide"),
        _section("Kinds of BLEU of the same outputs", _kinds_chart(card)),
        _section("Outputs", _outputs(card)),
        _section(f"BLEU by {card.length_of} length", _length_chart(card)),
        _section("Words by frequency", _frequency_chart(card)),
        _section("Sentences by chrF2", _histogram_chart(card), "wide"),
        _section("Worst sentences by chrF2", _examples(card.worst, languages), "wide"),
        _section("Best sentences by chrF2", _examples(card.best, languages), "wide"),
    ]
    page = (static / "card_page.html").read_text(encoding="utf-8")
    return page.format(
        title=_escape(title),
        style=(static / "card_page.css").read_text(encoding="utf-8"),
        sections="\n".join(filter(None, sections)),
    )


def _section(title: str, body: str, kind: str = "") -> str:
    if not body:
        return ""
    return f'<section class="{kind}">\n<h2>{_escape(title)}</h2>\n{body}\n</section>'


def _escape(text: str) -> str:
    return html.escape(printable(text))


def _score_table(scores: Sequence[NamedScore]) -> str:
    rows = []
    for score in scores:
        details = score.signature or score.missing or ""
        kind = ' class="paper"' if score.name == "bleu_paper" else ""
        rows.append(
            f'<tr{kind}><th scope="row">{_escape(score.label)}</th>'
            f"<td>{number(score.value)}</td>"
            f"<td>{_mark_code(score.meaning)}<code>{_escape(details)}</code></td></tr>"
        )
    return "<table>\n" + "\n".join(rows) + "\n</table>"


def _mark_code(text: str) -> str:
    """Escape a text and turn its backticks into elements."""
    return re.sub("`(.*?)`", r"<samp>\1</samp>", _escape(text))


def _kinds_chart(card: ScoreCard) -> str:
    groups = []
    for score in card.scores:
        if score.label.startswith("BLEU") and score.value is not None:
            first, _, second = score.label.removeprefix("BLEU ").partition(", ")
            groups.append(Columns(first, second, (score.value,)))
    largest = max(1.0, *(group.heights[0] or 0.0 for group in groups))
    chart = column_chart("BLEU by kind", groups, largest, digits=2)
    return chart + _caption("Only scores of one kind can be compared with each other.")


def _outputs(card: ScoreCard) -> str:
    rows = [
        f"<dt>{_escape(label)}</dt><dd>{_escape(value)}</dd>"
        for label, value in output_rows(card)
    ]
    definition = _caption(f"A loop is {DEFINITION}.")
    return "<dl>\n" + "\n".join(rows) + f"\n</dl>\n{definition}"


def _length_chart(card: ScoreCard) -> str:
    groups = [
        Columns(band.label, f"{band.sentences:,} sent.", (band.bleu,))
        for band in card.by_length
    ]
    largest = max(1.0, *(band.bleu for band in card.by_length))
    title = f"BLEU {card.tokenizer} by length in words"
    return column_chart(title, groups, largest) + _caption(
        f"BLEU {card.tokenizer} of the sentences by the number of words of the "
        f"{card.length_of}."
    )


def _frequency_chart(card: ScoreCard) -> str:
    if not card.by_frequency:
        return ""
    groups = [
        Columns(
            band.label,
            quantity(band.in_references, "word"),
            (band.recall, band.precision),
        )
        for band in card.by_frequency
    ]
    legend = (
        '<p class="legend"><span class="series0">recall</span> '
        '<span class="series1">precision</span></p>'
    )
    chart = column_chart("Recall and precision by frequency", groups, largest=100)
    caption = _caption(
        f"Percentages, by the frequency of the word in {card.counted_in}. Below: the "
        "number of these words in the references."
    )
    return legend + chart + caption


def _histogram_chart(card: ScoreCard) -> str:
    step = 100 // len(card.chrf_histogram)
    groups = [
        Columns(f"{n * step}-{(n + 1) * step}", "", (count,))
        for n, count in enumerate(card.chrf_histogram)
    ]
    largest = max(card.chrf_histogram)
    return column_chart("Number of sentences by chrF2", groups, largest, digits=0)


def _caption(text: str) -> str:
    return f'<p class="caption">{_escape(text)}</p>'


def _examples(
    examples: Sequence[ScoredSentence], languages: Mapping[str, str | None]
) -> str:
    shown = "\n".join(_example(example, languages) for example in examples)
    return f"<ol>\n{shown}\n</ol>" if shown else ""


def _example(example: ScoredSentence, languages: Mapping[str, str | None]) -> str:
    rows = []
    for label, text in example.texts():
        language = languages[label]
        lang = "" if language is None else f' lang="{_escape(language)}"'
        # Each text has the direction of its own first letter.
        rows.append(
            f'<dt>{label}</dt><dd dir="auto"{lang} class="{label}">'
            f"{_escape(shortened(text)) or '<i>(empty)</i>'}</dd>"
        )
    return (
        f"<li><h3>line {example.line}: chrF2 {example.chrf:.1f}, BLEU "
        f"{example.bleu:.1f}</h3>\n<dl>\n" + "\n".join(rows) + "\n</dl></li>"
    )


_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 22, 44
_FLOOR = _HEIGHT - _BOTTOM
_GAP = 0.3  # share of the width of a group
_WIDEST = 64  # largest width of a column, in units


@dataclasses.dataclass(frozen=True)
class Columns:
    """A group of columns side by side.

    Attributes:
        label: Text under the group.
        note: Smaller text under the label, such as a count.
        heights: A number of at least 0 per series; None leaves its column out.
    """

    label: str
    note: str
    heights: tuple[float | None, ...]


def column_chart(
    title: str, groups: Sequence[Columns], largest: float, digits: int = 1
) -> str:
    """Return a chart with a group of columns per label.

    The columns have the classes "series0", "series1" and so on.

    Args:
        title: Description, for screen readers.
        groups: The groups, from left to right; at least one.
        largest: Height of the tallest column that fits; greater than 0.
        digits: Decimals of the numbers above the columns.
    """
    room = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    shapes = [
        f'<line class="axis" x1="{_LEFT}" y1="{_FLOOR}" x2="{_WIDTH - _RIGHT}" '
        f'y2="{_FLOOR}"/>'
    ]
    for index, group in enumerate(groups):
        middle = _LEFT + (index + 0.5) * room
        width = min(room * (1 - _GAP) / len(group.heights), _WIDEST)
        start = middle - width * len(group.heights) / 2
        shapes += [
            _text(middle, _FLOOR + 17, group.label, "label"),
            _text(middle, _FLOOR + 34, group.note, "note"),
        ]
        for series, height in enumerate(group.heights):
            if height is None:
                continue
            x, tall = start + series * width, (_FLOOR - _TOP) * min(height / largest, 1)
            above = f"{height:,.{digits}f}"
            shapes += [
                f'<rect class="series{series}" x="{x + 1:.1f}" '
                f'y="{_FLOOR - tall:.1f}" width="{width - 2:.1f}" '
                f'height="{tall:.1f}"/>',
                _text(x + width / 2, _FLOOR - tall - 5, above, "value"),
            ]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(title)}">\n' + "\n".join(shapes) + "\n</svg>"
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
