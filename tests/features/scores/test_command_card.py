from __future__ import annotations

import argparse
import json
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.cli.main import main
from t2t_repro.cli.report import Scored, show_report
from t2t_repro.errors import UsageError
from t2t_repro.features.scores.command_card import add_flags, check_problem
from tests.support.trained_system import printed_by

pytestmark = pytest.mark.usefixtures("shared_translators")
GREEDY = ["--decode_hparams", "beam_size=1"]


def arguments(trained, *more):
    return ["evaluate", "--output_dir", str(trained.output_dir), *GREEDY, *more]


@pytest.fixture(scope="module")
def carded(trained, tmp_path_factory):
    page = tmp_path_factory.mktemp("card") / "card.html"
    printed = printed_by(arguments(trained, "--card", "json", "--card_html", str(page)))
    return json.loads(printed), page.read_text(encoding="utf-8")


def test_the_object_has_a_card_beside_the_usual_scores(trained, carded, tmp_path):
    report, _ = carded
    scores = {score["name"]: score for score in report["card"]["scores"]}
    assert scores["bleu_13a"]["value"] == pytest.approx(report["bleu"]["value"])
    assert scores["bleu_13a"]["signature"] == report["bleu"]["signature"]
    assert scores["chrf"]["value"] == pytest.approx(report["chrf"]["value"])
    assert report["card"]["sentences"] == report["sentences"]
    page = tmp_path / "card.html"
    usual = json.loads(printed_by(arguments(trained, "--card_html", str(page))))
    assert usual == {name: report[name] for name in usual}
    assert "card" not in usual  # because there is only a page
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_words_are_counted_in_the_training_text_and_the_page_has_a_title(carded):
    report, page = carded
    assert report["card"]["counted_in"] == "the training text (256 pairs)"
    assert f"Score card: text_pairs, test, {report['checkpoint']}</title>" in page


def test_language_tokenizer_and_data_are_those_of_the_flags(trained, tmp_path, capsys):
    (tmp_path / "text_pairs.manifest.json").write_text("{")  # prepared data, damaged
    flags = ["--card", "json", "--card_language", "fr", "--bleu_tokenizer", "intl"]
    for flag, side in (("source", "source"), ("reference", "target")):
        flags += [f"--{flag}", str(trained.text["test", side])]
    flags += ["--data_dir", str(tmp_path)]
    card = json.loads(printed_by(arguments(trained, *flags)))["card"]
    assert (card["language"], card["tokenizer"]) == ("fr", "intl")
    assert (card["length_of"], card["counted_in"]) == ("source", "the references")
    assert "words are counted in the references: " in capsys.readouterr().err


def test_translations_of_another_program_have_a_card(trained):
    target = str(trained.text["test", "target"])
    flags = ["evaluate", "--hypothesis", target, "--reference", target]
    card = json.loads(printed_by([*flags, "--card", "json"]))["card"]
    assert (card["counted_in"], card["length_of"]) == ("the references", "reference")
    assert card["language"] is card["faults"]["copies"] is None
    lines = printed_by([*flags, "--card"]).splitlines()
    assert lines[0].startswith("Score card: ")
    assert lines[2] == "Scores"
    assert "Words by frequency in the references" in lines


def parsed(*flags):
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return argparse.Namespace(data_dir=None, **vars(parser.parse_args(flags)))


def test_the_language_of_a_wmt_problem_is_the_default(capsys):
    catalogue.load()
    problem = catalogue.problem("translate_enfr_wmt14")
    system = SimpleNamespace(problem=problem, data_dir=None)
    show_report(parsed("--card", "json"), Scored({}, ["h"], ["r"], ["s"], system))
    assert json.loads(capsys.readouterr().out)["card"]["language"] == "fr"


def test_trees_have_no_score_card():
    catalogue.load()
    trees = catalogue.problem("parsing_synthetic")
    check_problem(parsed(), trees)
    check_problem(parsed("--card"), catalogue.problem("text_pairs"))
    with pytest.raises(UsageError, match="received a score card for problem parsing_"):
        check_problem(parsed("--card"), trees)


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
