"""Questions: verb first, or a question word and the verb second."""

from __future__ import annotations

from . import phrases
from .clauses import (
    ANY,
    add_adverbials,
    add_complements,
    draw_subject,
    draw_verb,
    start,
    verbs,
)
from .german import ACCUSATIVE, NOMINATIVE
from .linearization import (
    english_predicate,
    english_question,
    german_question,
    german_statement,
)
from .phrases import Draw
from .relatives import MAX_DEPTH, draw_clause, relative
from .sentences import Pair

_PEOPLE = phrases.PEOPLE


def _question(draw: Draw) -> Pair:
    clause = draw_clause(draw, ANY, 1 if draw.chance(0.4) else 0)
    return f"(SQ{english_question(clause)} (. ?))", f"{german_question(clause)} ?"


def _wh_adverb(draw: Draw) -> Pair:
    word, german = draw.pick((("Where", "wo"), ("When", "wann"), ("Why", "warum")))
    clause = start(draw, draw_verb(draw, _PEOPLE), ANY)
    while word == "Where" and clause.verb.frame == "motion":
        clause = start(draw, draw_verb(draw, _PEOPLE), ANY)
    draw_subject(draw, clause, _PEOPLE, relative(draw, MAX_DEPTH - 1))
    add_complements(draw, clause, relative(draw, MAX_DEPTH - 1))
    inside = english_question(clause)
    tree = f"(SBARQ (WHADVP (WRB {word})) (SQ{inside}) (. ?))"
    return tree, f"{german}{german_question(clause)} ?"


def _wh_subject(draw: Draw) -> Pair:
    clause = start(draw, draw_verb(draw, _PEOPLE), ANY)
    word, german = "(WP who)", "wer"
    if draw.chance(0.3):
        noun = phrases.draw_noun(draw, _PEOPLE)
        chosen = phrases.inflected(draw, noun, NOMINATIVE, phrases.WHICH)
        word, german = chosen.tree[4:-1], chosen.german
    add_complements(draw, clause, relative(draw, MAX_DEPTH - 1))
    add_adverbials(draw, clause)
    tree = f"(SBARQ (WHNP {word}) (SQ{english_predicate(clause)}) (. ?))"
    return tree, f"{german_statement(clause, german)} ?"


def _wh_object(draw: Draw) -> Pair:
    dative = draw.chance(0.3)
    options = verbs("dative" if dative else "accusative", _PEOPLE)
    clause = start(draw, draw.pick(options), ANY)
    person = not set(clause.verb.objects) - set(_PEOPLE)
    word, german = "(WP what)", "was"
    if dative or person:
        word, german = "(WP whom)", "wem" if dative else "wen"
    elif draw.chance(0.4):
        noun = phrases.draw_noun(draw, clause.verb.objects)
        chosen = phrases.inflected(draw, noun, ACCUSATIVE, phrases.WHICH)
        word, german = chosen.tree[4:-1], chosen.german
    draw_subject(draw, clause, _PEOPLE, relative(draw, 1))
    clause.objects = clause.verb.english.particle
    if clause.verb.preposition:
        tag = "TO" if clause.verb.preposition == "to" else "IN"
        clause.objects += f" (PP ({tag} {clause.verb.preposition}))"
    add_adverbials(draw, clause)
    tree = f"(SBARQ (WHNP {word}) (SQ{english_question(clause)}) (. ?))"
    return tree, f"{german}{german_question(clause)} ?"


PATTERNS = (
    *(_question,) * 5,
    *(_wh_adverb,) * 2,
    *(_wh_subject,) * 2,
    *(_wh_object,) * 3,
)
