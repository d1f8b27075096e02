from __future__ import annotations

import base64
import html
import json
import re

import numpy as np
import pytest

from t2t_repro.cli.main import main
from t2t_repro.data.prepared import PreparedData
from t2t_repro.features.attention_view import panels
from t2t_repro.features.attention_view.alignments import (
    AlignmentHeads,
    align,
    choose_alignment_heads,
)
from t2t_repro.features.attention_view.paper_figures import figure_3
from t2t_repro.runs import DecodeHParams, System
from tests.support.trained_system import printed_by

pytest.importorskip("matplotlib", reason="figures need the extra `plot`")

pytestmark = pytest.mark.usefixtures("shared_translators")
HPARAMS = "beam_size=2,extra_length=20"
SOURCE = "two: the ship is green ."


def attention_arguments(trained, *more: str) -> list[str]:
    return ["attention", "--output_dir", str(trained.output_dir), *more]


def documents_of(page: str) -> list[dict]:
    found = re.search(r'id="attention-data">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(found.group(1))["documents"]


def text_flags(folder, *texts) -> list[str]:
    flags = []
    for flag, lines in zip(("decode_from_file", "target_file"), texts, strict=False):
        (folder / flag).write_text("".join(f"{line}\n" for line in lines))
        flags += [f"--{flag}", str(folder / flag)]
    return flags


@pytest.fixture(scope="module")
def system(trained) -> System:
    return System.load(trained.output_dir)


def test_the_page_holds_the_systems_attention_to_its_own_translation(
    trained, system, tmp_path
):
    page = tmp_path / "page.html"
    flags = ["--source", SOURCE, "--html", str(page), "--decode_hparams", HPARAMS]
    assert printed_by(attention_arguments(trained, *flags)) == f"{page}\n"
    (document,) = documents_of(page.read_text(encoding="utf-8"))
    hparams = DecodeHParams().parse(HPARAMS)
    expected = system.attention(SOURCE, decode_hparams=hparams)
    assert (
        document["sequences"]["target"]["text"]
        == (system.translate([SOURCE], hparams)[0])
    )
    assert document["sequences"]["source"]["text"] == SOURCE
    for found in document["maps"]:
        weights = getattr(expected, found["kind"])
        decoded = np.frombuffer(base64.b64decode(found["weights"]), "<f2")
        np.testing.assert_allclose(decoded.reshape(weights.shape), weights, atol=1e-3)


def test_a_given_target_is_shown_with_its_score(trained, system):
    target = "zwei: das Schiff ist grün ."
    flags = ["--source", SOURCE, "--target", target, "--html", "-"]
    (document,) = documents_of(printed_by(attention_arguments(trained, *flags)))
    assert document["sequences"]["target"]["text"] == target
    assert document["score"] == pytest.approx(
        system.attention(SOURCE, target).score, abs=1e-4
    )


def test_a_blank_source_is_left_out_with_its_target_and_others_keep_theirs(
    trained, tmp_path
):
    pairs = [
        (SOURCE, "zwei: das Schiff ."),
        ("", "eins"),
        ("one: the book is red .", "ein Buch ."),
    ]
    flags = ["--html", "-", *text_flags(tmp_path, *zip(*pairs, strict=True))]
    found = [
        tuple(document["sequences"][side]["text"] for side in ("source", "target"))
        for document in documents_of(printed_by(attention_arguments(trained, *flags)))
    ]
    assert found == [pairs[0], pairs[2]]


def test_a_notebook_shows_the_page_in_a_frame(system):
    shown = system.attention(SOURCE)._repr_html_()
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', shown).group(1))
    (document,) = documents_of(page)
    assert document["sequences"]["source"]["text"] == SOURCE


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ([], 2, "give --source or --decode_from_file"),
        (["--source", "a", "--layer", "1"], 2, "--layer belongs to --figure and --al"),
        (["--source", "a", "--kind", "memory"], 2, "--kind belongs to --figure"),
        (["--source", "a", "--target_file", "f"], 2, "--target_file belongs to"),
        (["--source", "a", "--decode_from_file", "b"], 2, "give either --source or"),
        (["--decode_from_file", "f", "--target", "b"], 2, "--target belongs to"),
        (["--source", "a", "--decode_hparams", "return_beams=1"], 2, "return_beams"),
        (["--source", " "], 1, "received a source without words"),
        (["--source", "a", "--target", ""], 1, "received a target without words"),
        (["--source", "the " * 40], 1, "of 41 tokens, expected at most 32"),
        (["--source", "a", "--checkpoint_path", "nowhere"], 1, "nowhere"),
    ],
)
def test_bad_input_gets_one_clear_sentence(
    trained, tmp_path, capsys, flags, code, message
):
    page = tmp_path / "page.html"
    arguments = attention_arguments(trained, *flags, "--html", str(page))
    assert main(arguments) == code
    error = capsys.readouterr().err.splitlines()[-1]
    assert message in error
    assert not page.exists()


def test_the_number_of_a_bad_sentence_in_a_file_is_named(trained, tmp_path, capsys):
    flags = [*text_flags(tmp_path, [SOURCE, "the " * 40]), "--html", "-"]
    assert main(attention_arguments(trained, *flags)) == 1
    assert "sentence 2: received a source of 41 tokens" in capsys.readouterr().err


@pytest.mark.parametrize("lines", [0, 51])
def test_a_file_without_sentences_or_with_too_many_is_refused(
    trained, tmp_path, capsys, lines
):
    flags = [*text_flags(tmp_path, ["a b"] * lines), "--html", "-"]
    assert main(attention_arguments(trained, *flags)) == 1
    assert f"received {lines} sentences" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["3", "5"])
def test_a_figure_is_written_as_svg_and_pdf(trained, tmp_path, capsys, number):
    flags = ["--figure", number, "--source", SOURCE, "--figure_dir", str(tmp_path)]
    printed = printed_by(attention_arguments(trained, *flags, "--layer", "1"))
    names = [tmp_path / f"figure_{number}.{kind}" for kind in ("svg", "pdf")]
    assert printed.splitlines() == [str(name) for name in names]
    assert ">ship<" in names[0].read_text(encoding="utf-8")
    assert names[1].read_bytes().startswith(b"%PDF-")
    assert f"figure {number}: " in capsys.readouterr().err


def test_a_figure_without_matplotlib_is_refused_before_any_work(monkeypatch, capsys):
    monkeypatch.setattr(panels.importlib.util, "find_spec", lambda name: None)
    assert main(["attention", "--output_dir", "nowhere", "--figure", "3"]) == 2
    assert "needs Matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["ship", "3"])
def test_a_figure_shows_the_requested_heads_at_the_requested_word(
    trained, system, tmp_path, word
):
    flags = ["--figure", "3", "--source", SOURCE, "--figure_dir", str(tmp_path)]
    flags += ["--layer", "1", "--heads", "2", "--word", word, "--kind", "memory"]
    target = "zwei: das Schiff ist grün ."
    if word == "ship":
        flags[-1] = "encoder_self"
        expected = figure_3(system.attention(SOURCE), layer=1, heads=[2], word="ship")
    else:
        flags += ["--target", target]
        expected = figure_3(
            system.attention(SOURCE, target),
            kind="memory",
            layer=1,
            heads=[2],
            word=3,
        )
    printed_by(attention_arguments(trained, *flags))
    written = (tmp_path / "figure_3.svg").read_text(encoding="utf-8")
    assert written == expected.to_svg()


def test_alignments_of_given_translations_have_a_line_per_pair(
    trained, system, tmp_path, capsys
):
    sources, targets = [SOURCE, "", "a " * 40], ["zwei: das Schiff .", "", "ein"]
    flags = ["--alignments", str(tmp_path / "links"), "--layer", "1", "--heads", "2"]
    flags += text_flags(tmp_path, sources, targets)
    printed_by(attention_arguments(trained, *flags))
    links = align(system.attention(SOURCE, targets[0]), AlignmentHeads(1, (2,)))
    written = (tmp_path / "links").read_text().splitlines()
    assert written == [" ".join(f"{s}-{t}" for s, t in sorted(links)), "", ""]
    assert {t for _, t in links} == {0, 1, 2, 3}
    errors = capsys.readouterr().err
    assert "line 3 is not aligned: received a source of" in errors
    assert "line 2" not in errors


def test_without_a_layer_the_heads_are_chosen_on_the_dev_data(
    trained, system, capsys, monkeypatch
):
    data = PreparedData.load(trained.data_dir, system.problem)
    expected = choose_alignment_heads(system, data)
    flags = ["--alignments", "-", "--source", SOURCE]
    assert main(attention_arguments(trained, *flags)) == 0
    output = capsys.readouterr()
    assert f"aligning by {expected}" in output.err
    links = align(system.attention(SOURCE), expected)
    assert output.out.split() == [f"{s}-{t}" for s, t in sorted(links)]


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--figure", "3", "--layer", "9"], 1, "received layer 9"),
        (["--figure", "4", "--heads", "9"], 1, "received head 9"),
        (["--figure", "3", "--word", "cow"], 1, "cow"),
        (["--figure", "5", "--word", "ship"], 2, "--word belongs to --figure 3 and 4"),
        (["--figure", "3", "--heads", "1,1"], 2, "received '1,1', expected different"),
        (["--figure", "3", "--heads", "0"], 2, "received '0', expected different"),
        (["--figure", "3", "--html", "-"], 2, "not allowed with argument"),
        (["--figure", "3", "--heads", "a"], 2, "expected different numbers from 1"),
        (["--alignments", "-", "--layer", "7"], 1, "received layer 7"),
        (["--alignments", "-", "--layer", "1", "--heads", "9"], 1, "received head 9"),
        (["--alignments", "-", "--heads", "1"], 2, "--heads of --alignments needs"),
        (["--alignments", "-", "--data_dir", "nowhere"], 1, "nowhere"),
        (
            ["--alignments", "-", "--layer", "1", "--data_dir", "a"],
            2,
            "leave out one of the two",
        ),
        (["--figure", "3", "--figure_dir", "/dev/null/x"], 1, "cannot write to"),
        (["--figure", "3", "--figure_dir", __file__], 1, "expected a folder"),
    ],
)
def test_unknown_layers_heads_and_words_are_named(
    trained, tmp_path, capsys, flags, code, message
):
    assert main(attention_arguments(trained, "--source", SOURCE, *flags)) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--html", "--alignments"])
@pytest.mark.parametrize("lost", ["decode_from_file", "target_file"])
def test_no_output_replaces_an_input(trained, tmp_path, capsys, flag, lost):
    given = text_flags(tmp_path, [SOURCE], [SOURCE])
    assert main(attention_arguments(trained, *given, flag, str(tmp_path / lost))) == 2
    assert "which is also an input" in capsys.readouterr().err
    assert (tmp_path / lost).read_text() == f"{SOURCE}\n"


def test_a_paper_sentence_that_is_too_long_is_named(trained, capsys):
    assert main(attention_arguments(trained, "--figure", "3")) == 1
    error = capsys.readouterr().err
    assert "the paper's sentence: received a source of" in error
    assert "give another sentence" in error
