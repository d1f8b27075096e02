from __future__ import annotations

import json

import pytest

from t2t_repro.cli.main import main
from tests.support.trained_system import printed_by

GREEDY = ["--decode_hparams", "beam_size=1"]


def arguments(trained, *more):
    return ["evaluate", "--output_dir", str(trained.output_dir), *GREEDY, *more]


@pytest.fixture(scope="module")
def carded(trained, tmp_path_factory):
    """Return the object with a card, and the page."""
    page = tmp_path_factory.mktemp("card") / "card.html"
    printed = printed_by(arguments(trained, "--card", "json", "--card_html", str(page)))
    return json.loads(printed), page.read_text(encoding="utf-8")


def test_the_object_has_a_card_beside_the_usual_scores(trained, carded):
    report, _ = carded
    scores = {score["name"]: score for score in report["card"]["scores"]}
    assert scores["bleu_13a"]["value"] == pytest.approx(report["bleu"]["value"])
    assert scores["bleu_13a"]["signature"] == report["bleu"]["signature"]
    assert scores["chrf"]["value"] == pytest.approx(report["chrf"]["value"])
    assert report["card"]["sentences"] == report["sentences"]
    usual = json.loads(printed_by(arguments(trained)))
    assert usual == {name: report[name] for name in usual}
    assert "card" not in usual


def test_words_are_counted_in_the_training_text(carded):
    assert carded[0]["card"]["counted_in"] == "the training text (256 pairs)"


def test_the_page_names_problem_data_and_checkpoint(carded):
    report, page = carded
    assert f"Score card: text_pairs, test, {report['checkpoint']}</title>" in page


def test_the_card_is_text_by_default(trained):
    lines = printed_by(arguments(trained, "--card", "--split", "dev")).splitlines()
    assert lines[0].startswith("Score card: text_pairs, dev, ")
    assert lines[2] == "Scores"
    assert "Words by frequency in the training text (256 pairs)" in lines


def test_a_page_alone_leaves_the_object_as_it_is(trained, tmp_path):
    page = tmp_path / "card.html"
    report = json.loads(printed_by(arguments(trained, "--card_html", str(page))))
    assert "card" not in report
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_without_prepared_data_words_are_counted_in_the_references(trained, tmp_path):
    files = [
        flag
        for name, side in (("--source", "source"), ("--reference", "target"))
        for flag in (name, str(trained.text["test", side]))
    ]
    elsewhere = ["--data_dir", str(tmp_path)]
    printed = printed_by(arguments(trained, *files, *elsewhere, "--card", "json"))
    assert json.loads(printed)["card"]["counted_in"] == "the references"


def test_damaged_prepared_data_is_reported_and_the_card_is_made(
    trained, tmp_path, capsys
):
    (tmp_path / "text_pairs.manifest.json").write_text("{")
    source, target = (str(trained.text["test", s]) for s in ("source", "target"))
    flags = ["--source", source, "--reference", target, "--data_dir", str(tmp_path)]
    assert main(arguments(trained, *flags, "--card")) == 0
    captured = capsys.readouterr()
    assert "words are counted in the references: " in captured.err
    assert "Words by frequency in the references" in captured.out


@pytest.mark.parametrize(
    ("flags", "code", "answer"),
    [
        (["--card", "xml"], 2, "--card"),
        (["--card_html", "-"], 2, "received --card_html -, expected a file"),
        (["--card_html", "no/where"], 1, "received --card_html no/where"),
        (["--card_language", "de"], 2, "--card_language needs --card"),
    ],
)
def test_wrong_flags_are_refused_before_any_work(trained, capsys, flags, code, answer):
    assert main(arguments(trained, *flags)) == code
    captured = capsys.readouterr()
    assert answer in captured.err
    assert captured.out == ""


def test_an_unknown_language_is_refused_before_any_work(trained, capsys):
    pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    flags = ["--card", "--card_language", "xx"]
    assert main(arguments(trained, *flags)) == 1
    assert "received language 'xx'" in capsys.readouterr().err
