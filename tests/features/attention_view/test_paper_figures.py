from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import t2t_repro.features.attention_view
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.paper_figures import (
    figure_3,
    figure_4,
    figure_5,
)
from t2t_repro.features.attention_view.sentence_attention import Attention
from tests.support import word_attention

pytest.importorskip("matplotlib", reason="figures need the extra `plot`")

STATIC = Path(t2t_repro.features.attention_view.__file__).parent / "static"
SVG = "{http://www.w3.org/2000/svg}"
SENTENCE = "the law is old but its use is new"
ITS = 5


def attention_of(text, *, layers=3, heads=4, target="x") -> Attention:
    s, t = len(text.split()) + 1, len(target.split()) + 1
    memory = np.zeros((layers, heads, t, s), np.float32)
    memory[..., 0] = 1.0
    attention = word_attention.attention_of(text, target, memory)
    attention.encoder_self[:] = np.eye(s)
    return attention


def point(attention: Attention, layer: int, head: int, query: int, key: int) -> None:
    """Give a link half of a word's attention; layer and head from 1."""
    row = attention.encoder_self[layer - 1, head - 1, query]
    row[:] = 0.0
    row[query], row[key] = 0.5, 0.5


def lines(figure) -> list[tuple[float, float, float]]:
    """Return the columns of the ends of each line, and its opacity."""
    (axes,) = figure.drawing.axes
    return [
        (start, end, opacity)
        for drawn in axes.collections
        for ((start, _), (end, _)), (*_, opacity) in zip(
            drawn.get_segments(), drawn.get_colors(), strict=True
        )
    ]


def texts(figure) -> list[str]:
    root = ElementTree.fromstring(figure.to_svg())
    return [text.text for text in root.iter(f"{SVG}text")]


def legend(figure) -> list[str]:
    from matplotlib.colors import to_hex

    return [to_hex(box.get_facecolor()) for box in figure.drawing.axes[0].patches]


@pytest.mark.parametrize("draw", [figure_3, figure_4, figure_5])
def test_the_last_layer_but_one_is_drawn_and_named_above_the_heads(draw):
    attention = attention_of(SENTENCE, layers=6)
    assert texts(draw(attention))[0] == "Encoder self-attention, layer 5 of 6"
    figure = draw(attention, kind="memory", layer=2)
    assert texts(figure)[0] == "Encoder-decoder attention, layer 2 of 6"
    assert texts(draw(attention_of("a b c", layers=1)))[0].endswith("layer 1 of 1")


def test_everything_fits_into_a_narrow_figure_below_its_caption():
    drawing = figure_5(attention_of("a donaudampfschiff", layers=6)).drawing
    drawing.set_dpi(72)
    drawing.draw_without_rendering()
    width, height = drawing.get_size_inches() * 72
    (axes,) = drawing.axes
    points = axes.transData.inverted()
    boxes = [text.get_window_extent().transformed(points) for text in axes.texts]
    for box in boxes:
        assert 0 <= box.x0 < box.x1 <= width
        assert 0 <= box.y1 < box.y0 <= height
    assert boxes[0].y0 < boxes[1].y1


def test_figure_3_draws_the_lines_of_all_heads_at_one_word():
    attention = attention_of(SENTENCE)
    point(attention, 2, 3, query=1, key=7)
    found = lines(figure_3(attention, word="law"))
    start, column = found[0][0], 17.0
    assert {line[0] for line in found} == {start}
    ends = sorted((round((end - start) / column), weight) for _, end, weight in found)
    # Heads 1, 2 and 4 attend to the word itself; head 3 also six words further.
    assert ends == [(0, 0.5), *[(0, 1.0)] * 3, (6, 0.5)]


def test_the_heads_of_a_figure_have_the_colors_of_the_light_page():
    figure = figure_3(attention_of(SENTENCE, heads=10), word="law")
    view = (STATIC / "attention_view.js").read_text(encoding="utf-8")
    (light,) = re.findall(r'light: (\[".*"\])', view)
    assert legend(figure)[:10] == json.loads(light)


def test_a_word_can_be_given_by_its_position():
    attention = attention_of("the law and the dog")
    first = figure_3(attention, word="the")
    assert first.to_svg() == figure_3(attention, word=1).to_svg()
    assert (
        figure_3(attention, word="4").to_svg() == figure_3(attention, word=4).to_svg()
    )
    assert first.to_svg() != figure_3(attention, word=4).to_svg()
    assert first.to_pdf() == figure_3(attention, word=1).to_pdf()


def test_a_word_is_found_without_its_punctuation_and_case():
    attention = attention_of("The law, though old.")
    assert "'law,'" in figure_3(attention, word="Law").description


def test_the_word_that_attends_farthest_is_the_default_without_the_papers_word():
    attention = attention_of("a b c d e f")
    for head in (1, 2, 3, 4):
        point(attention, 2, head, query=4, key=0)
    assert "'e'" in figure_3(attention).description


def test_figure_4_takes_the_two_sharpest_heads_at_its():
    attention = attention_of(SENTENCE)
    point(attention, 2, 2, query=ITS, key=1)
    point(attention, 2, 4, query=ITS, key=2)
    figure = figure_4(attention)
    assert figure.description.endswith("heads 2, 4, at 'its'")
    labels = [text for text in texts(figure) if text.startswith("head ")]
    assert labels == ["head 2", "head 4", "head 2", "head 4"]
    # Ten words: two full panels with one more line each, then two heads at one word.
    assert len(lines(figure)) == 2 * (10 + 1) + 2 * 2


def test_neighbours_and_eos_do_not_make_a_head_sharp():
    attention = attention_of(SENTENCE)
    point(attention, 2, 1, query=ITS, key=ITS - 1)
    point(attention, 2, 2, query=ITS, key=9)  # EOS
    point(attention, 2, 3, query=ITS, key=1)
    point(attention, 2, 4, query=ITS, key=8)
    assert "heads 3, 4" in figure_4(attention).description


def test_figure_5_takes_the_two_heads_with_the_most_distant_links():
    attention = attention_of(SENTENCE)
    for query in range(3, 9):
        point(attention, 2, 1, query, key=0)
        point(attention, 2, 3, query, key=1)
    point(attention, 2, 2, query=8, key=0)
    figure = figure_5(attention)
    assert figure.description.endswith("heads 1, 3")
    assert len(lines(figure)) == 2 * (10 + 6)


def test_lines_go_from_brackets_to_words_in_encoder_decoder_attention():
    attention = attention_of("the dog", target="(S (NP XX XX )NP )S")
    attention.memory[1, :, 1] = [0.0, 1.0, 0.0]
    figure = figure_3(attention, kind="memory", heads=[1], word="(NP")
    assert texts(figure)[2:-3] == ["(S", "(NP", "XX", "XX", ")NP", ")S", "<EOS>"]
    assert texts(figure)[-3:] == ["the", "dog", "<EOS>"]
    ((start, end, _),) = lines(figure)
    assert start == end  # "(NP" and "dog" are both second


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": 0}, "received layer 0, expected 1 to 3"),
        ({"word": "cat"}, "received word 'cat'.*the law is old"),
        ({"word": 11}, "received word 11, expected a position from 1 to 10"),
        ({"kind": "encoder_parameters"}, "expected one of encoder_self, decoder_self"),
    ],
)
def test_what_does_not_exist_is_refused_by_naming_what_does(arguments, message):
    with pytest.raises(UserError, match=message):
        figure_3(attention_of(SENTENCE), **arguments)


def test_any_text_is_only_text():
    hostile = "<script>x()</script> \"'& \x00\x1b " + "x" * 10_000 + " \u05d0\u05d1"
    figure = figure_5(attention_of(hostile))
    root = ElementTree.fromstring(figure.to_svg())
    assert not list(root.iter(f"{SVG}script"))
    assert "<script>x()</script>" in texts(figure)
    assert "�" * 2 in texts(figure)  # characters that XML does not allow
    assert max(map(len, texts(figure))) < 50
    assert len(figure_3(attention_of(hostile), word=4).description) < 200


def test_a_pdf_has_its_words_and_the_font_of_its_letters():
    pdf = figure_5(attention_of("собака is a dog")).to_pdf()
    assert pdf.startswith(b"%PDF-")
    assert b"/FontFile2" in pdf
    assert "собака" in figure_5(attention_of("собака is a dog")).to_svg()


def test_characters_that_no_font_has_are_named_once(monkeypatch, caplog):
    from matplotlib.font_manager import fontManager

    fonts = [font for font in fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(fontManager, "ttflist", fonts)
    figure = figure_5(attention_of("日 本 日 собака"))
    assert figure.to_pdf()
    assert "日" in texts(figure)
    (record,) = caplog.records
    assert "characters 日本:" in record.getMessage()
