"""German word order, on clauses put together by hand."""

from __future__ import annotations

import pytest

from t2t_repro.features.synthetic import clauses, lexicon
from t2t_repro.features.synthetic.german import Agreement
from t2t_repro.features.synthetic.tenses import Tense

VERBS = {v.german.prefix + v.german.infinitive: v for v in lexicon.VERBS}


def clause(verb: str, tense: str, subject: str, **fields: str) -> clauses.Clause:
    words = {f"{name}_de": f" {text}" for name, text in fields.items()}
    return clauses.Clause(
        VERBS[verb], Tense(tense), Agreement.THIRD, subject_de=f" {subject}", **words
    )


@pytest.mark.parametrize(
    ("drawn", "main", "last"),
    [
        (
            clause("aufmachen", "present", "der Mann", definite="die Tür"),
            "der Mann macht die Tür auf",
            "der Mann die Tür aufmacht",
        ),
        (
            clause("aufmachen", "past", "der Mann", definite="die Tür", time="heute"),
            "der Mann hat heute die Tür aufgemacht",
            "der Mann heute die Tür aufgemacht hat",
        ),
        (
            clause("abholen", "must", "sie", pronouns="ihn", time="um acht Uhr"),
            "sie muss ihn um acht Uhr abholen",
            "sie ihn um acht Uhr abholen muss",
        ),
        (
            clause("kaufen", "passive", "das Haus", manner="vom König"),
            "das Haus wurde vom König gekauft",
            "das Haus vom König gekauft wurde",
        ),
        (
            clause("gehen", "past", "er", manner="schnell", predicate="in den Wald"),
            "er ist schnell in den Wald gegangen",
            "er schnell in den Wald gegangen ist",
        ),
        (
            clause("kennen", "present", "er", definite="die Frau", after=", die singt"),
            "er kennt die Frau , die singt",
            "er die Frau kennt , die singt",
        ),
    ],
)
def test_german_verb_is_second_in_main_and_last_in_other_clauses(drawn, main, last):
    assert clauses.german_statement(drawn).strip() == main
    assert clauses.german_subordinate(drawn).strip() == last


def test_fronting_puts_the_subject_after_the_verb():
    drawn = clause("einladen", "present", "der Mann", definite="die Frau")
    front = clauses.german_statement(drawn, " heute")
    assert front.strip() == "heute lädt der Mann die Frau ein"


def test_infinitive_has_no_subject_and_zu_inside():
    drawn = clause("zumachen", "present", "er", definite="das Fenster")
    assert clauses.german_infinitive(drawn).strip() == "das Fenster zuzumachen"
