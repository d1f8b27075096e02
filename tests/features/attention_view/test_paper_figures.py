from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import t2t_repro.features.attention_view
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.drawing import (
    Box,
    Drawing,
    Label,
    Line,
    text_width,
)
from t2t_repro.features.attention_view.paper_figures import (
    PAPER_SENTENCES,
    PAPER_WORDS,
    figure_3,
    figure_4,
    figure_5,
)
from t2t_repro.features.attention_view.pdf import MissingCharacter, pdf
from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
)
from t2t_repro.features.attention_view.svg import svg

STATIC = Path(t2t_repro.features.attention_view.__file__).parent / "static"
SVG = "{http://www.w3.org/2000/svg}"
SENTENCE = "the law is old but its use is new"
ITS = 5


def sequence(text: str) -> TokenSequence:
    """Make one token per word, and EOS."""
    tokens = (*(f"▁{word}" for word in text.split()), "</s>")
    spans = tuple((index, index + 1) for index in range(len(tokens)))
    return TokenSequence(text, tokens, spans)


def attention_of(
    text: str, *, layers: int = 3, heads: int = 4, target: str = "x"
) -> Attention:
    """Make weights on the word itself, in all layers and heads."""
    source, written = sequence(text), sequence(target)
    s, t = len(source.tokens), len(written.tokens)
    own = np.tile(np.eye(s, dtype=np.float32), (layers, heads, 1, 1))
    memory = np.zeros((layers, heads, t, s), np.float32)
    memory[..., 0] = 1.0
    return Attention(
        source=source,
        target=written,
        encoder_self=own,
        decoder_self=np.tile(np.eye(t, dtype=np.float32), (layers, heads, 1, 1)),
        memory=memory,
        score=0.0,
    )


def point(attention: Attention, layer: int, head: int, query: int, key: int) -> None:
    """Give a link half of a word's attention; layer and head from 1."""
    row = attention.encoder_self[layer - 1, head - 1, query]
    row[:] = 0.0
    row[query], row[key] = 0.5, 0.5


def lines(figure) -> list[tuple[float, float, str]]:
    """Return the columns of the ends of each line, and its opacity."""
    root = ElementTree.fromstring(figure.to_svg())
    found = root.iter(f"{SVG}line")
    return [
        (float(line.get("x1")), float(line.get("x2")), line.get("stroke-opacity"))
        for line in found
    ]


def texts(figure) -> list[str]:
    root = ElementTree.fromstring(figure.to_svg())
    return [text.text for text in root.iter(f"{SVG}text")]


def test_the_papers_sentences_have_the_papers_words():
    for number, words in PAPER_WORDS.items():
        assert words[0] in PAPER_SENTENCES[number].split()
    assert PAPER_SENTENCES[4] == PAPER_SENTENCES[5]
    assert set(PAPER_SENTENCES) == {3, 4, 5}


def test_a_figure_is_of_the_last_layer_but_one():
    attention = attention_of(SENTENCE, layers=6)
    assert "layer 5 of 6" in figure_3(attention).description
    assert "layer 1 of 1" in figure_5(attention_of("a b c", layers=1)).description


@pytest.mark.parametrize("draw", [figure_3, figure_4, figure_5])
def test_the_layer_is_written_above_the_heads(draw):
    attention = attention_of(SENTENCE, layers=6)
    assert texts(draw(attention))[0] == "Encoder self-attention, layer 5 of 6"
    figure = draw(attention, kind="memory", layer=2)
    assert texts(figure)[0] == "Encoder-decoder attention, layer 2 of 6"


def test_the_layer_fits_into_a_narrow_figure():
    figure = figure_5(attention_of("a", layers=6))
    caption = figure.drawing.shapes[0]
    width = text_width(caption.text, caption.size)
    assert caption.x + width + caption.x <= figure.drawing.width


def test_the_layer_is_above_the_legend_of_the_heads():
    labels = [
        s
        for s in figure_5(attention_of(SENTENCE)).drawing.shapes
        if isinstance(s, Label) and not s.upward
    ]
    caption, legend, _ = labels
    assert caption.y + caption.size < legend.y
    assert legend.text.startswith("head ")


def test_figure_3_draws_the_lines_of_all_heads_at_one_word():
    attention = attention_of(SENTENCE)
    point(attention, 2, 3, query=1, key=7)
    found = lines(figure_3(attention, word="law"))
    start, column = found[0][0], 17.0
    assert {line[0] for line in found} == {start}
    ends = sorted((round((end - start) / column), weight) for _, end, weight in found)
    # Heads 1, 2 and 4 attend to the word itself; head 3 also six words further.
    assert ends == [(0, "0.5"), *[(0, "1")] * 3, (6, "0.5")]


def test_figure_3_draws_the_chosen_heads_in_their_colors():
    attention = attention_of(SENTENCE)
    one = figure_3(attention, heads=[2], word="law").to_svg()
    assert "head 2" in one
    assert "head 1" not in one
    both = figure_3(attention, heads=[1, 2], word="law").to_svg()
    colors = {line.get("stroke") for line in ElementTree.fromstring(both).iter()}
    assert colors - {None} == {"#0076b1", "#d86200"}


def test_the_heads_of_a_figure_have_the_colors_of_the_light_page():
    figure = figure_3(attention_of(SENTENCE, heads=10), word="law").to_svg()
    legend = [
        box.get("fill") for box in ElementTree.fromstring(figure).iter(f"{SVG}rect")
    ]
    view = (STATIC / "attention_view.js").read_text(encoding="utf-8")
    (light,) = re.findall(r'light: (\[".*"\])', view)
    # The first rectangle is the page.
    assert legend[1:11] == json.loads(light)


def test_a_word_can_be_given_by_its_position():
    attention = attention_of("the law and the dog")
    first = figure_3(attention, word="the")
    assert first.to_svg() == figure_3(attention, word=1).to_svg()
    assert (
        figure_3(attention, word="4").to_svg() == figure_3(attention, word=4).to_svg()
    )
    assert first.to_svg() != figure_3(attention, word=4).to_svg()


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
        ({"layer": 4}, "received layer 4, expected 1 to 3"),
        ({"layer": 0}, "received layer 0, expected 1 to 3"),
        ({"heads": [5]}, "received head 5, expected 1 to 4"),
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


DRAWING = Drawing(
    "Title",
    100.0,
    50.0,
    (
        Line((10.0, 10.0), (20.0, 30.0), (255, 0, 0), 0.5),
        Box(1.0, 2.0, 3.0, 4.0, (0, 0, 255), 1.0),
        Label(5.0, 45.0, "Größe (1)", 10.0),
        Label(50.0, 45.0, "ab", 10.0, upward=True, anchor="end"),
    ),
)


def pdf_content(document: bytes) -> str:
    stream = re.search(rb"stream\n(.*)\nendstream", document, re.DOTALL)
    return zlib.decompress(stream[1]).decode("cp1252")


def test_pdf_measures_from_the_lower_left_corner():
    line, box, label, upward = pdf_content(pdf(DRAWING)).split("\n")
    assert line == "q /a0 gs 1 0 0 RG 1.5 w 1 J 10 40 m 20 20 l S Q"
    assert box == "q /a1 gs 0 0 1 rg 1 44 3 4 re f Q"
    assert label == r"BT /F 10 Tf 0 0 0 rg 1 0 0 1 5 5 Tm (Größe \(1\)) Tj ET"
    # "ab" is 11.12 points wide and ends at a height of 5.
    assert upward == "BT /F 10 Tf 0 0 0 rg 0 1 -1 0 50 -6.12 Tm (ab) Tj ET"


def test_the_table_of_a_pdf_points_to_its_objects():
    document = pdf(DRAWING)
    assert document.startswith(b"%PDF-1.4\n")
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", document)[1])
    assert document[start:].startswith(b"xref\n0 7\n")
    offsets = re.findall(rb"(\d{10}) 00000 n \n", document[start:])
    for number, offset in enumerate(offsets, start=1):
        assert document[int(offset) :].startswith(b"%d 0 obj\n" % number)
    length = int(re.search(rb"/Length (\d+)", document)[1])
    stream = document.index(b"stream\n") + len(b"stream\n")
    assert document[stream + length :].startswith(b"\nendstream")


def test_a_pdf_states_its_opacities():
    assert b"/a0 << /ca 0.5 /CA 0.5 >> /a1 << /ca 1 /CA 1 >>" in pdf(DRAWING)


def test_a_pdf_refuses_letters_that_its_font_does_not_have():
    attention = attention_of("собака is a dog")
    with pytest.raises(MissingCharacter, match=r"собака.*use the SVG"):
        figure_5(attention).to_pdf()
    assert "собака" in figure_5(attention).to_svg()


def test_svg_has_the_same_shapes():
    root = ElementTree.fromstring(svg(DRAWING))
    line = next(root.iter(f"{SVG}line"))
    assert (line.get("x1"), line.get("y2"), line.get("stroke")) == (
        "10",
        "30",
        "#ff0000",
    )
    labels = list(root.iter(f"{SVG}text"))
    assert labels[0].text == "Größe (1)"
    assert labels[1].get("transform") == "translate(50 45) rotate(-90)"
    assert labels[1].get("text-anchor") == "end"
    assert next(root.iter(f"{SVG}title")).text == "Title"


def test_widths_are_those_of_helvetica():
    # H 722, e 556, l 222, l 222, o 556; an umlaut is as wide as its letter.
    assert text_width("Hello", 10.0) == pytest.approx(22.78)
    assert text_width("öß", 10.0) == pytest.approx(5.56 + 6.11)


def test_equal_figures_are_equal_files():
    first, second = (figure_4(attention_of(SENTENCE)) for _ in range(2))
    assert first.to_pdf() == second.to_pdf()
    assert first.to_svg() == second.to_svg()
