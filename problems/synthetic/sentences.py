"""The kinds of sentences: one, two or more clauses put together."""

from __future__ import annotations

from . import adverbials, phrases
from .clauses import (
    ANY,
    NOW,
    PAST,
    PRESENT,
    add_adverbials,
    add_complements,
    bare,
    draw_subject,
    draw_verb,
    start,
    verbs,
)
from .german import ACCUSATIVE
from .linearization import (
    Clause,
    english_infinitive,
    english_predicate,
    english_statement,
    german_infinitive,
    german_question,
    german_statement,
    german_subordinate,
)
from .phrases import Draw
from .relatives import MAX_DEPTH, draw_clause, relative

# An English tree and the German words, both with their final mark.
Pair = tuple[str, str]
_PEOPLE = phrases.PEOPLE
# A conjunction in English and in German.
Link = tuple[str, str]
_REASONS: tuple[Link, ...] = (("because", "weil"), ("although", "obwohl"))
_TIMES: tuple[Link, ...] = (("while", "während"), ("before", "bevor"))


def _statement(clause: Clause) -> Pair:
    tree = english_statement(clause)
    return f"{tree[:-1]} (. .))", f"{german_statement(clause)} ."


def _simple(draw: Draw) -> Pair:
    return _statement(draw_clause(draw, ANY, MAX_DEPTH))


def _take_front(draw: Draw, clause: Clause) -> tuple[str, str]:
    """Removes the adverbial that is to stand first and returns it."""
    if clause.place and draw.chance(0.6):
        front = clause.place, clause.place_de
        clause.place = clause.place_de = ""
        return front
    if not clause.time:
        tree, words = adverbials.time(draw, clause.tense)
        return f" {tree}", f" {words}"
    front = clause.time, clause.time_de
    clause.time = clause.time_de = ""
    return front


def _fronted_adverbial(draw: Draw) -> Pair:
    clause = draw_clause(draw, ANY, MAX_DEPTH)
    tree, words = _take_front(draw, clause)
    comma = " (, ,)" if tree.startswith(" (PP") else ""
    english = f"(S{tree}{comma}{clause.subject}{english_predicate(clause)} (. .))"
    return english, f"{german_statement(clause, words)} ."


def _fronted_object(draw: Draw) -> Pair:
    clause = start(draw, draw.pick(verbs("accusative", _PEOPLE)), ANY)
    topic = phrases.noun_phrase(
        draw, clause.verb.objects, ACCUSATIVE, phrases.DEMONSTRATIVE
    )
    draw_subject(draw, clause, _PEOPLE)
    clause.objects = clause.verb.english.particle
    if clause.verb.preposition:
        clause.objects += f" (PP (IN {clause.verb.preposition}))"
    add_adverbials(draw, clause)
    subject, predicate = clause.subject, english_predicate(clause)
    tree = f"(S {topic.tree} (, ,){subject}{predicate} (. .))"
    return tree, f"{german_statement(clause, topic.german)} ."


def conjunction(draw: Draw, past: bool) -> Link:
    """Draws a conjunction; "when" is als for the past and wenn otherwise."""
    if draw.chance(0.5):
        return draw.pick(_REASONS)
    if draw.chance(0.5):
        return draw.pick(_TIMES)
    if past:
        return "when", "als"
    return draw.pick((("when", "wenn"), ("if", "wenn")))


def tenses_after(link: Link, past: bool) -> tuple[str, ...]:
    """Returns the tenses of a subordinate clause: no "when he will come"."""
    if past:
        return PAST
    return PRESENT if link in _REASONS else NOW


def _subordinate(link: Link, clause: Clause) -> tuple[str, str]:
    word, german = link
    tag = "WHADVP (WRB when)" if word == "when" else f"IN {word}"
    tree = f"(SBAR ({tag}) {english_statement(clause)})"
    return tree, f"{german}{german_subordinate(clause)}"


def main_first(main: Clause, link: Link, other: Clause) -> Pair:
    """Puts a subordinate clause behind a main clause."""
    tree, words = _subordinate(link, other)
    english = f"(S{main.subject}{english_predicate(main)[:-1]} {tree}) (. .))"
    return english, f"{german_statement(main)} , {words} ."


def main_last(main: Clause, link: Link, other: Clause) -> Pair:
    """Puts a subordinate clause into the front field of a main clause."""
    tree, words = _subordinate(link, other)
    english = f"(S {tree} (, ,){main.subject}{english_predicate(main)} (. .))"
    return english, f"{words} ,{german_question(main)} ."


def coordinated(draw: Draw, first: Clause, second: Clause) -> Pair:
    """Joins two main clauses with "and" or "but"."""
    word, german = draw.pick((("and", " und"), ("but", " , aber"), ("but", " , aber")))
    left, right = english_statement(first), english_statement(second)
    tree = f"(S {left} (, ,) (CC {word}) {right} (. .))"
    return tree, f"{german_statement(first)}{german}{german_statement(second)} ."


def _subordination(draw: Draw) -> Pair:
    past = draw.chance(0.5)
    link = conjunction(draw, past)
    main = draw_clause(draw, PAST if past else PRESENT, MAX_DEPTH - 1)
    other = draw_clause(draw, tenses_after(link, past), MAX_DEPTH - 2)
    if main.closed or draw.chance(0.35):
        return main_last(main, link, other)
    return main_first(main, link, other)


def _coordination(draw: Draw) -> Pair:
    first = draw_clause(draw, ANY, MAX_DEPTH - 1)
    second = draw_clause(draw, ANY, MAX_DEPTH - 2)
    return coordinated(draw, first, second)


def _reporting(draw: Draw, frame: str, tenses: tuple[str, ...]) -> Clause:
    clause = start(draw, draw.pick(verbs(frame, _PEOPLE)), tenses)
    draw_subject(draw, clause, _PEOPLE)
    return clause


def _complement(draw: Draw) -> Pair:
    """Says that ..., asks whether ..."""
    past = draw.chance(0.5)
    frame, link = ("that", ("that", "dass"))
    if draw.chance(0.3):
        frame, link = ("whether", ("whether", "ob"))
    main = _reporting(draw, frame, PAST if past else PRESENT)
    inner = draw_clause(draw, PAST if past else ANY, MAX_DEPTH - 1)
    tree, words = _subordinate(link, inner)
    main.tail, main.after_de = f" {tree}", f" , {words} ,"
    if draw.chance(0.2):
        front, front_de = _take_front(draw, main)
        comma = " (, ,)" if front.startswith(" (PP") else ""
        english = f"(S{front}{comma}{main.subject}{english_predicate(main)} (. .))"
        return english, f"{german_statement(main, front_de)} ."
    return _statement(main)


def _infinitive_clause(draw: Draw) -> Clause:
    clause = Clause(draw_verb(draw, _PEOPLE), "present")
    add_complements(draw, clause, relative(draw, 1))
    if not clause.closed and draw.chance(0.25):
        tree, words = draw.pick(adverbials.MANNER)
        clause.manner, clause.manner_de = f" {tree}", f" {words}"
    return clause


def _infinitive(draw: Draw) -> Pair:
    """Tries to ..., goes to the city in order to ..."""
    inner = _infinitive_clause(draw)
    if draw.chance(0.6):
        main = _reporting(draw, "control", ANY)
        main.tail = english_infinitive(inner)
        main.after_de = f" ,{german_infinitive(inner)} ,"
        return _statement(main)
    main = start(draw, draw_verb(draw, _PEOPLE), ANY)
    draw_subject(draw, main, _PEOPLE)
    add_complements(draw, main, bare)
    main.tail = f" (SBAR (IN in) (NN order){english_infinitive(inner)})"
    main.after_de = f" , um{german_infinitive(inner)} ,"
    return _statement(main)


PATTERNS = (
    *(_simple,) * 30,
    *(_fronted_adverbial,) * 15,
    *(_fronted_object,) * 5,
    *(_subordination,) * 14,
    *(_coordination,) * 5,
    *(_complement,) * 8,
    *(_infinitive,) * 5,
)
