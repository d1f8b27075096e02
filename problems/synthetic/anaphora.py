"""Sentences with a noun in one clause and its pronoun in the next.

German calls a thing er, sie or es by the gender of its noun, so the pronoun can
only be written by looking back. No other noun before the pronoun can be meant by
"it": the other people are men and women, and adverbials hold no nouns.
"""

from __future__ import annotations

from . import phrases
from .clauses import (
    PAST,
    PRESENT,
    add_adverbials,
    add_complements,
    add_verb_object,
    bare,
    draw_subject,
    draw_verb,
    set_subject,
    start,
    verbs,
)
from .german import ACCUSATIVE, NOMINATIVE, THIRD_PLURAL
from .linearization import (
    Clause,
    english_predicate,
    german_question,
    german_statement,
)
from .phrases import Draw, NounPhrase
from .relatives import add_adjective, add_predicate
from .sentences import (
    Pair,
    conjunction,
    coordinated,
    main_first,
    main_last,
    tenses_after,
)
from .verbs import BE, Verb

_SEXED = "hq"
# Verbs whose objects are animals, things or food.
_HANDLING = tuple(
    verb
    for verb in verbs("accusative", _SEXED)
    if set(verb.objects) - set(phrases.PEOPLE) and verb.objects != "hqxv"
)
_ONE = tuple(d for d in phrases.PLAIN if not d.plural)
_SEVERAL = tuple(d for d in phrases.PLAIN if d.plural)


def _affirm(clause: Clause) -> Clause:
    clause.negated = clause.nicht = False
    return clause


def _handled(
    draw: Draw, tenses: tuple[str, ...]
) -> tuple[Clause, NounPhrase, NounPhrase]:
    """Someone does something to a thing; returns also thing and person."""
    clause = _affirm(start(draw, draw.pick(_HANDLING), tenses))
    person = draw_subject(draw, clause, _SEXED)
    tags = "".join(t for t in clause.verb.objects if t not in "hqxlv")
    several = person.agreement != THIRD_PLURAL and draw.chance(0.25)
    thing = phrases.noun_phrase(draw, tags, ACCUSATIVE, _SEVERAL if several else _ONE)
    add_verb_object(clause, thing)
    add_adverbials(draw, clause, 0.4, nouns=False)
    return clause, thing, person


def _described(draw: Draw, tenses: tuple[str, ...]) -> tuple[Clause, NounPhrase, None]:
    """A thing or an animal is said to be somehow."""
    clause = start(draw, BE, tenses)
    several = draw.chance(0.2)
    determiners = tuple(d for d in (_SEVERAL if several else _ONE) if d.definite)
    tags = draw.pick(("t", "t", "f", "a", "a", "l"))
    thing = phrases.noun_phrase(draw, tags, NOMINATIVE, determiners)
    set_subject(clause, thing)
    add_adjective(draw, clause, thing.noun.tags)
    return clause, thing, None


def _other_verb(draw: Draw, verb: Verb, thing: NounPhrase) -> Verb:
    """Draws a verb, not `verb`, of which `thing` can be the object."""
    options = verbs("accusative", _SEXED, thing.noun.tags)
    other = draw.pick(options)
    while other is verb:
        other = draw.pick(options)
    return other


def _handling_again(
    draw: Draw,
    verb: Verb,
    thing: NounPhrase,
    person: NounPhrase | None,
    tenses: tuple[str, ...],
) -> Clause:
    clause = start(draw, _other_verb(draw, verb, thing), tenses)
    if person and not (person.pronoun or person.negative) and draw.chance(0.6):
        set_subject(clause, phrases.anaphor(person, NOMINATIVE))
    else:
        draw_subject(draw, clause, _SEXED)
    add_verb_object(clause, phrases.anaphor(thing, ACCUSATIVE))
    add_adverbials(draw, clause, 0.4, nouns=False)
    return clause


def _about(draw: Draw, thing: NounPhrase, tenses: tuple[str, ...]) -> Clause:
    """Draws a clause whose subject is the pronoun of `thing`."""
    tags = thing.noun.tags
    active = tags[0] == "a" and draw.chance(0.6)
    clause = start(draw, draw_verb(draw, "a") if active else BE, tenses)
    set_subject(clause, phrases.anaphor(thing, NOMINATIVE))
    if active:
        add_complements(draw, clause, bare)
    else:
        add_predicate(draw, clause, tags)
    add_adverbials(draw, clause, 0.4)
    return clause


def _two_clauses(draw: Draw) -> Pair:
    past = draw.chance(0.5)
    link = conjunction(draw, past)
    main, subordinate = PAST if past else PRESENT, tenses_after(link, past)
    layout = draw.pick(("coordinated", "main last", "main first", "main first"))
    first_tenses = subordinate if layout == "main last" else main
    second_tenses = subordinate if layout == "main first" else main
    describe = draw.chance(0.35)
    first, thing, person = (_described if describe else _handled)(draw, first_tenses)
    if draw.chance(0.5) and (not describe or thing.noun.tags[0] == "a"):
        second = _about(draw, thing, second_tenses)
    else:
        second = _handling_again(draw, first.verb, thing, person, second_tenses)
    if layout == "coordinated":
        return coordinated(draw, first, second)
    if layout == "main last":
        return main_last(second, link, first)
    return main_first(first, link, second)


def _one_subject(draw: Draw) -> Pair:
    """Buys the lamp and sells it: the second verb phrase has no subject."""
    first, thing, _ = _handled(draw, ("present",))
    verb = _other_verb(draw, first.verb, thing)
    second = Clause(verb, "present", first.agreement)
    add_verb_object(second, phrases.anaphor(thing, ACCUSATIVE))
    left, right = english_predicate(first), english_predicate(second)
    tree = f"(S{first.subject} (VP{left} (CC and){right}) (. .))"
    return tree, f"{german_statement(first)} und{german_question(second)} ."


PATTERNS = (_two_clauses,) * 13 + (_one_subject,) * 3
