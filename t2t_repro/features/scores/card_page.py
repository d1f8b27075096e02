"""The score card of translations as one self-contained HTML page without scripts."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from t2t_repro.features.scores.card import DEFINITION, ScoreCard, ScoredSentence
from t2t_repro.features.scores.card_text import (
    number,
    output_rows,
    shortened,
)
from t2t_repro.features.scores.corpus_scores import NamedScore
from t2t_repro.text_tables import printable, quantity

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src \
'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
<main>
{sections}
</main>
</body>
</html>
"""


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
    style = resources.files("t2t_repro.features.scores") / "static" / "card_page.css"
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
    return _PAGE.format(
        title=_escaped(title),
        style=style.read_text(encoding="utf-8"),
        sections="\n".join(filter(None, sections)),
    )


def _section(title: str, body: str, kind: str = "") -> str:
    if not body:
        return ""
    return f'<section class="{kind}">\n<h2>{_escaped(title)}</h2>\n{body}\n</section>'


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _score_table(scores: Sequence[NamedScore]) -> str:
    rows = []
    for score in scores:
        details = score.signature or score.missing or ""
        kind = ' class="paper"' if score.name == "bleu_paper" else ""
        rows.append(
            f'<tr{kind}><th scope="row">{_escaped(score.label)}</th>'
            f"<td>{number(score.value)}</td>"
            f"<td>{_with_code(score.meaning)}<code>{_escaped(details)}</code></td></tr>"
        )
    return "<table>\n" + "\n".join(rows) + "\n</table>"


def _with_code(text: str) -> str:
    """Escape a text and turn its backticks into elements."""
    return re.sub("`(.*?)`", r"<samp>\1</samp>", _escaped(text))


def _kinds_chart(card: ScoreCard) -> str:
    found = [s for s in card.scores if s.label.startswith("BLEU")]
    groups = [
        Columns(*_two_lines(s.label.removeprefix("BLEU ")), (s.value,))
        for s in found
        if s.value is not None
    ]
    values = [s.value for s in found if s.value is not None]
    return column_chart(
        "BLEU by kind", groups, largest=max(*values, 1.0), digits=2
    ) + _caption("Only scores of one kind can be compared with each other.")


def _two_lines(label: str) -> tuple[str, str]:
    first, _, second = label.partition(", ")
    return first, second


def _outputs(card: ScoreCard) -> str:
    rows = [
        f"<dt>{_escaped(label)}</dt><dd>{_escaped(value)}</dd>"
        for label, value in output_rows(card)
    ]
    definition = _caption(f"A loop is {DEFINITION}.")
    return "<dl>\n" + "\n".join(rows) + f"\n</dl>\n{definition}"


def _length_chart(card: ScoreCard) -> str:
    groups = [
        Columns(band.label, f"{band.sentences:,} sent.", (band.bleu,))
        for band in card.by_length
    ]
    chart = column_chart(
        f"BLEU {card.tokenizer} by length in words",
        groups,
        largest=max(1.0, *(band.bleu for band in card.by_length)),
    )
    caption = (
        f"BLEU {card.tokenizer} of the sentences by the number of words of the "
        f"{card.length_of}."
    )
    return chart + _caption(caption)


def _frequency_chart(card: ScoreCard) -> str:
    if not card.by_frequency:
        return ""
    groups = [
        Columns(band.label, quantity(band.in_references, "word"), values)
        for band in card.by_frequency
        for values in [(band.recall, band.precision)]
    ]
    chart = column_chart("Recall and precision by frequency", groups, largest=100)
    legend = (
        '<p class="legend"><span class="series0">recall</span> '
        '<span class="series1">precision</span></p>'
    )
    return (
        legend
        + chart
        + _caption(
            f"Percentages, by the frequency of the word in {card.counted_in}. Below: "
            "the number of these words in the references."
        )
    )


def _histogram_chart(card: ScoreCard) -> str:
    step = 100 // len(card.chrf_histogram)
    groups = [
        Columns(f"{n * step}-{(n + 1) * step}", "", (count,))
        for n, count in enumerate(card.chrf_histogram)
    ]
    return column_chart(
        "Number of sentences by chrF2",
        groups,
        largest=max(card.chrf_histogram),
        digits=0,
    )


def _caption(text: str) -> str:
    return f'<p class="caption">{_escaped(text)}</p>'


def _examples(
    examples: Sequence[ScoredSentence], languages: Mapping[str, str | None]
) -> str:
    if not examples:
        return ""
    shown = "\n".join(_example(example, languages) for example in examples)
    return f"<ol>\n{shown}\n</ol>"


def _example(example: ScoredSentence, languages: Mapping[str, str | None]) -> str:
    texts = [
        ("source", example.source),
        ("reference", example.reference),
        ("output", example.hypothesis),
    ]
    rows = [
        # Each text has the direction of its own first letter.
        f'<dt>{label}</dt><dd dir="auto"{_lang(languages[label])} class="{label}">'
        f"{_escaped(shortened(text)) or '<i>(empty)</i>'}</dd>"
        for label, text in texts
        if text is not None
    ]
    return (
        f"<li><h3>line {example.line}: chrF2 {example.chrf:.1f}, BLEU "
        f"{example.bleu:.1f}</h3>\n<dl>\n" + "\n".join(rows) + "\n</dl></li>"
    )


def _lang(language: str | None) -> str:
    return "" if language is None else f' lang="{_escaped(language)}"'


_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 22, 44
_FLOOR = _HEIGHT - _BOTTOM
_GAP = 0.3  # of the room of a group
_WIDEST = 64  # units of a column


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
        left = _LEFT + index * room
        shapes += _group(group, left, room, largest, digits)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(title)}">\n' + "\n".join(shapes) + "\n</svg>"
    )


def _group(
    group: Columns, left: float, room: float, largest: float, digits: int
) -> list[str]:
    width = min(room * (1 - _GAP) / len(group.heights), _WIDEST)
    middle = left + room / 2
    start = middle - width * len(group.heights) / 2
    shapes = [
        _text(middle, _FLOOR + 17, group.label, "label"),
        _text(middle, _FLOOR + 34, group.note, "note"),
    ]
    for series, height in enumerate(group.heights):
        if height is not None:
            x = start + series * width
            shapes += _column(x, width, height, largest, digits, series)
    return shapes


def _column(
    x: float, width: float, height: float, largest: float, digits: int, series: int
) -> list[str]:
    tall = (_FLOOR - _TOP) * min(height / largest, 1)
    return [
        f'<rect class="series{series}" x="{x + 1:.1f}" y="{_FLOOR - tall:.1f}" '
        f'width="{width - 2:.1f}" height="{tall:.1f}"/>',
        _text(x + width / 2, _FLOOR - tall - 5, f"{height:,.{digits}f}", "value"),
    ]


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
