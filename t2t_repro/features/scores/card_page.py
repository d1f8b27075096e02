"""The score card of translations as one self-contained HTML page without scripts."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from t2t_repro.features.scores.card import ScoreCard
from t2t_repro.features.scores.card_text import (
    number,
    output_rows,
    shortened,
)
from t2t_repro.features.scores.column_chart import Columns, column_chart
from t2t_repro.features.scores.corpus_scores import NamedScore
from t2t_repro.features.scores.repetition import DEFINITION
from t2t_repro.features.scores.scored_sentences import ScoredSentence
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
