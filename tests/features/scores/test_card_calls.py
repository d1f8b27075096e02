"""Every flag and text reaches the score card; all values differ."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.cli.report import Scored, show_report
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UsageError
from t2t_repro.features.scores import command_card as module
from t2t_repro.features.scores import word_bands
from t2t_repro.features.scores.card import make_card
from t2t_repro.features.scores.command_card import add_flags, check_problem
from t2t_repro.features.scores.word_bands import WordCounts
from tests.support.recorder import Recorder, record

HYPOTHESES, REFERENCES, SOURCES = ["h1", "h2"], ["r1", "r2"], ["s1", "s2"]
WORDS = WordCounts({"r1": 7}, "a recorded text")
REPORT = {"problem": "a problem", "data": "some data", "checkpoint": "at step 9"}


def parsed(*flags, data_dir=None):
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return argparse.Namespace(data_dir=data_dir, **vars(parser.parse_args(flags)))


@pytest.fixture
def made(monkeypatch):
    return record(monkeypatch, module, "make_card", make_card)


@pytest.fixture
def found(monkeypatch):
    recorder = Recorder(PreparedData.find, "the data")
    monkeypatch.setattr(PreparedData, "find", recorder)
    monkeypatch.setattr(word_bands, "training_pairs_to_count", lambda data: 3)
    monkeypatch.setattr(
        word_bands,
        "count_training_words",
        lambda data, advance, tokenizer: WORDS if tokenizer == "intl" else None,
    )
    return recorder


@pytest.fixture
def system():
    problem = catalogue.problem("algorithmic_reverse")
    return SimpleNamespace(problem=problem, data_dir="run's data")


def test_all_texts_reach_the_card(made, found, system, capsys):
    args = parsed("--card", "json", "--card_language", "fr")
    show_report(args, Scored(REPORT, HYPOTHESES, REFERENCES, SOURCES, system, "intl"))
    assert made.call == {
        "hypotheses": HYPOTHESES,
        "references": REFERENCES,
        "sources": SOURCES,
        "training_words": WORDS,
        "language": "fr",
        "examples": 5,
        "tokenizer": "intl",
    }
    assert found.call == {"folder": "run's data", "problem": system.problem}
    printed = json.loads(capsys.readouterr().out)
    assert {name: printed[name] for name in REPORT} == REPORT
    assert printed["card"]["counted_in"] == "a recorded text"


def test_given_data_are_read_instead_of_the_runs(made, found, system):
    args = parsed("--card", data_dir="elsewhere")
    show_report(args, Scored(REPORT, HYPOTHESES, REFERENCES, SOURCES, system))
    assert found.call["folder"] == "elsewhere"


def test_the_language_of_a_wmt_problem_is_the_default(made, found, system):
    catalogue.load()
    system.problem = catalogue.problem("translate_enfr_wmt14")
    show_report(
        parsed("--card"), Scored(REPORT, HYPOTHESES, REFERENCES, SOURCES, system)
    )
    assert made.call["language"] == "fr"


def test_without_a_system_there_are_no_training_words(made, found, capsys):
    show_report(parsed("--card"), Scored({}, HYPOTHESES, REFERENCES))
    assert made.call["training_words"] is made.call["sources"] is None
    assert made.call["language"] is None
    assert found.calls == []
    assert capsys.readouterr().out.startswith("Score card")


def test_without_flags_no_card_is_made(made, found, system, capsys):
    show_report(parsed(), Scored(REPORT, HYPOTHESES, REFERENCES, SOURCES, system))
    assert made.calls == []
    assert json.loads(capsys.readouterr().out) == REPORT


def test_the_page_has_the_title_of_the_report(made, tmp_path, capsys):
    path = tmp_path / "card.html"
    show_report(
        parsed("--card_html", str(path)), Scored(REPORT, HYPOTHESES, REFERENCES)
    )
    title = "<title>Score card: a problem, some data, at step 9</title>"
    assert title in path.read_text()
    assert json.loads(capsys.readouterr().out) == REPORT


def test_trees_have_no_score_card():
    catalogue.load()
    trees = catalogue.problem("parsing_synthetic")
    check_problem(parsed(), trees)
    check_problem(parsed("--card"), catalogue.problem("text_pairs"))
    with pytest.raises(UsageError, match="received a score card for problem parsing_"):
        check_problem(parsed("--card"), trees)
