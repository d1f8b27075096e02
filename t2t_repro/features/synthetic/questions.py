"""Questions, with the verb first or after a question word."""

from __future__ import annotations

from t2t_repro.features.synthetic import phrases, tenses
from t2t_repro.features.synthetic.clauses import (
    add_adverbials,
    add_complements,
    add_objectless_verb,
    draw_subject,
    draw_verb,
    start,
)
from t2t_repro.features.synthetic.draw import Draw
from t2t_repro.features.synthetic.english import children_of_noun_phrase
from t2t_repro.features.synthetic.german import Case
from t2t_repro.features.synthetic.linearization import (
    english_predicate,
    english_question,
    german_question,
    german_statement,
)
from t2t_repro.features.synthetic.relatives import MAX_DEPTH, draw_clause, relative
from t2t_repro.features.synthetic.traits import PEOPLE, Trait
from t2t_repro.features.synthetic.verbs import Frame, find_verbs
from t2t_repro.features.synthetic.words import Pair

_WHERE = Pair("Where", "wo")
_ADVERBS = (_WHERE, Pair("When", "wann"), Pair("Why", "warum"))
_WHO = Pair("(WP who)", "wer")
_WHOM_ACCUSATIVE = Pair("(WP whom)", "wen")
_WHOM_DATIVE = Pair("(WP whom)", "wem")
_WHAT = Pair("(WP what)", "was")


def _question(draw: Draw) -> Pair:
    clause = draw_clause(draw, tenses.ANY, 1 if draw.chance(0.4) else 0)
    tree = f"(SQ{english_question(clause)} (. ?))"
    return Pair(tree, f"{german_question(clause)} ?")


def _wh_adverb(draw: Draw) -> Pair:
    word = draw.pick(_ADVERBS)
    clause = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    while word is _WHERE and clause.verb.frame is Frame.MOTION:
        clause = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    draw_subject(draw, clause, PEOPLE, relative(draw, MAX_DEPTH - 1))
    add_complements(draw, clause, relative(draw, MAX_DEPTH - 1))
    inside = english_question(clause)
    tree = f"(SBARQ (WHADVP (WRB {word.english})) (SQ{inside}) (. ?))"
    return Pair(tree, f"{word.german}{german_question(clause)} ?")


def _which(draw: Draw, traits: Trait, case: Case) -> Pair:
    """Draw "which" with a noun."""
    noun = phrases.draw_noun(draw, traits)
    chosen = phrases.inflected(draw, noun, case, phrases.WHICH)
    return Pair(children_of_noun_phrase(chosen.tree), chosen.german)


def _wh_subject(draw: Draw) -> Pair:
    clause = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    word = _which(draw, PEOPLE, Case.NOMINATIVE) if draw.chance(0.3) else _WHO
    add_complements(draw, clause, relative(draw, MAX_DEPTH - 1))
    add_adverbials(draw, clause)
    inside = english_predicate(clause)
    tree = f"(SBARQ (WHNP {word.english}) (SQ{inside}) (. ?))"
    return Pair(tree, f"{german_statement(clause, word.german)} ?")


def _wh_object(draw: Draw) -> Pair:
    dative = draw.chance(0.3)
    frame = Frame.DATIVE if dative else Frame.ACCUSATIVE
    clause = start(draw, draw.pick(find_verbs(frame, PEOPLE)), tenses.ANY)
    word = _WHAT
    if dative:
        word = _WHOM_DATIVE
    elif not clause.verb.objects & ~PEOPLE:
        word = _WHOM_ACCUSATIVE
    elif draw.chance(0.4):
        word = _which(draw, clause.verb.objects, Case.ACCUSATIVE)
    draw_subject(draw, clause, PEOPLE, relative(draw, 1))
    add_objectless_verb(clause)
    add_adverbials(draw, clause)
    inside = english_question(clause)
    tree = f"(SBARQ (WHNP {word.english}) (SQ{inside}) (. ?))"
    return Pair(tree, f"{word.german}{german_question(clause)} ?")


PATTERNS = (
    *(_question,) * 5,
    *(_wh_adverb,) * 2,
    *(_wh_subject,) * 2,
    *(_wh_object,) * 3,
)
