from __future__ import annotations

import json
import subprocess
import sys

import pytest

from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.scores import corpus_scores as module
from t2t_repro.features.scores.corpus_scores import (
    MosesTokenizer,
    corpus_scores,
    tokenized_bleu,
)

REFERENCES = [
    "Der rot-grüne Bus fährt heute nach Köln.",
    "„Ist das Ihr Ernst?“, fragte sie \N{EN DASH} 3,5 Mal.",
    "Ein Mann spielt Gitarre auf der Straße.",
]
HYPOTHESES = [
    "der rot-grüne Bus fährt nach Köln.",
    "„Ist das ihr Ernst?“ fragte sie, 3,5 mal.",
    "Ein Mann spielt Gitarre an der Straße.",
]
COMMAND_LINES = {
    "bleu_13a": ["-m", "bleu"],
    "bleu_13a_lc": ["-m", "bleu", "-lc"],
    "bleu_intl": ["-m", "bleu", "-tok", "intl"],
    "bleu_intl_lc": ["-m", "bleu", "-tok", "intl", "-lc"],
    "chrf": ["-m", "chrf"],
    "chrf_plus_plus": ["-m", "chrf", "--chrf-word-order", "2"],
    "ter": ["-m", "ter"],
}


@pytest.fixture(scope="module")
def scores():
    return {s.name: s for s in corpus_scores(HYPOTHESES, REFERENCES, "de")}


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_score_and_signature_are_those_of_sacrebleus_command_line(
    scores, name, tmp_path
):
    for file, lines in (("hypotheses", HYPOTHESES), ("references", REFERENCES)):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "sacrebleu", "references", "-i", "hypotheses"),
            *("-w", "8", "-f", "json", *COMMAND_LINES[name]),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = json.loads(ended.stdout)
    assert scores[name].value == pytest.approx(expected["score"], abs=1e-7)
    assert scores[name].signature == expected["signature"]


def test_all_kinds_of_bleu_differ_on_this_text(scores):
    names = ("bleu_13a", "bleu_13a_lc", "bleu_intl", "bleu_intl_lc")
    assert len({round(scores[name].value, 4) for name in names}) == len(names)


def test_tokenised_scores_are_those_of_the_papers_kind():
    pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    for language in ("de", "fr"):
        found = corpus_scores(HYPOTHESES, REFERENCES, language)
        scores = {score.name: score for score in found}
        for name, split in (("bleu_tokenized", False), ("bleu_paper", True)):
            expected = tokenized_bleu(
                HYPOTHESES,
                REFERENCES,
                MosesTokenizer(language),
                compounds_split=split,
            )
            assert scores[name].value == expected.value
            assert scores[name].signature == expected.signature


def test_without_sacremoses_the_other_scores_are_there(monkeypatch, scores):
    monkeypatch.setattr(module, "is_available", lambda: False)
    found = {s.name: s for s in corpus_scores(HYPOTHESES, REFERENCES, "de")}
    assert found.keys() == scores.keys()
    for name in ("bleu_tokenized", "bleu_paper"):
        assert found[name].value is found[name].signature is None
        assert "pip install sacremoses" in found[name].missing
    for name in COMMAND_LINES:
        assert found[name] == scores[name]


@pytest.mark.parametrize(
    ("language", "reason"), [(None, "give card_language"), ("xx", "language xx")]
)
def test_the_papers_kinds_need_a_language_that_moses_knows(language, reason, scores):
    pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    found = {s.name: s for s in corpus_scores(HYPOTHESES, REFERENCES, language)}
    assert found.keys() == scores.keys()
    for name in ("bleu_tokenized", "bleu_paper"):
        assert found[name].value is found[name].signature is None
        assert reason in found[name].missing
    for name in COMMAND_LINES:
        assert found[name] == scores[name]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bleu_13a", "sacreBLEU's default"),
        ("bleu_13a_lc", "big 27.92"),
        ("bleu_intl", "`t2t-bleu`, cased"),
        ("bleu_intl_lc", "`t2t-bleu`, uncased"),
        ("bleu_paper", "Vaswani et al., Table 2, English-German"),
    ],
)
def test_each_score_names_its_kind_and_no_discussion_of_it(scores, name, kind):
    assert kind in scores[name].meaning
    assert "issue" not in scores[name].meaning


def test_quoted_numbers_of_table_2_are_those_of_the_reproduced_table(scores):
    rows = {row.name: row.published for row in find_table("table2").rows}
    base, big = rows["transformer_base_model"], rows["transformer_big"]
    for name, column in (("bleu_paper", "en-de"), ("bleu_tokenized", "en-fr")):
        assert f"base {base[column]}, big {big[column]}" in scores[name].meaning


@pytest.mark.parametrize(
    ("hypotheses", "references", "chrf", "ter"),
    [
        (["", ""], ["a b", "c"], 0, 100),
        (["a"], [""], 0, 100),
        ([""], [""], 0, 0),
        (["a"], ["a"], 100, 0),
    ],
)
def test_text_without_four_words_divides_by_no_zero(hypotheses, references, chrf, ter):
    found = {x.name: x.value for x in corpus_scores(hypotheses, references, "de")}
    assert {value for name, value in found.items() if "bleu" in name} == {0}
    assert (found["chrf"], found["chrf_plus_plus"]) == pytest.approx((chrf, chrf))
    assert found["ter"] == ter
