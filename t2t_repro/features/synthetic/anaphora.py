"""Sentences with a noun in one clause and its pronoun in the next.

In German, a thing is er, sie or es by the gender of its noun, so the pronoun can be
translated only by looking back. "It" cannot refer to any other earlier noun: the others
are men and women, and the adverbials in these clauses have no nouns.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.features.synthetic import phrases
from t2t_repro.features.synthetic.clauses import (
    Clause,
    add_adjective,
    add_adverbials,
    add_complements,
    add_predicate,
    add_verb_object,
    bare,
    draw_subject,
    draw_verb,
    english_predicate,
    german_question,
    german_statement,
    set_subject,
    start,
)
from t2t_repro.features.synthetic.german import Case
from t2t_repro.features.synthetic.lexicon import BE, Frame, Verb, find_verbs
from t2t_repro.features.synthetic.phrases import NounPhrase
from t2t_repro.features.synthetic.pronouns import anaphor
from t2t_repro.features.synthetic.sentence_patterns import (
    coordinated,
    draw_link,
    main_first,
    main_last,
)
from t2t_repro.features.synthetic.tenses import Tense, Tenses
from t2t_repro.features.synthetic.word_traits import PEOPLE, Draw, Pair, Trait

_MEN_AND_WOMEN = Trait.MAN | Trait.WOMAN
_NOT_HANDLED = PEOPLE | Trait.PLACE | Trait.VISITABLE
# Verbs whose objects are animals, things or food.
_HANDLING = tuple(
    verb
    for verb in find_verbs(Frame.ACCUSATIVE, _MEN_AND_WOMEN)
    if verb.objects & ~(PEOPLE | Trait.VISITABLE)
)
_DESCRIBED = (
    *(Trait.THING,) * 2,
    Trait.FOOD,
    *(Trait.ANIMAL,) * 2,
    Trait.PLACE,
)
_ONE = tuple(d for d in phrases.PLAIN if not d.plural)
_SEVERAL = tuple(d for d in phrases.PLAIN if d.plural)
# Share of second clauses whose subject is the person of the first.
_SUBJECT_AGAIN = 0.6


@dataclass(frozen=True, slots=True)
class _Antecedent:
    """A clause, and the noun phrases that pronouns can refer to.

    Attributes:
        clause: The clause.
        thing: A thing or an animal in it.
        person: The person who does something to the thing, if any.
    """

    clause: Clause
    thing: NounPhrase
    person: NounPhrase | None = None


def _draw_handling(draw: Draw, family: Tenses) -> _Antecedent:
    """Draw a clause in which someone does something to a thing."""
    clause = start(draw, draw.pick(_HANDLING), family)
    clause.negated = clause.nicht = False
    person = draw_subject(draw, clause, _MEN_AND_WOMEN)
    several = not person.plural and draw.chance(0.25)
    traits = clause.verb.objects & ~_NOT_HANDLED
    determiners = _SEVERAL if several else _ONE
    thing = phrases.noun_phrase(draw, traits, Case.ACCUSATIVE, determiners)
    add_verb_object(clause, thing)
    add_adverbials(draw, clause, 0.4, nouns=False)
    return _Antecedent(clause, thing, person)


def _draw_description(draw: Draw, family: Tenses) -> _Antecedent:
    """Draw a clause that describes a thing or an animal."""
    clause = start(draw, BE, family)
    several = draw.chance(0.2)
    determiners = tuple(d for d in (_SEVERAL if several else _ONE) if d.definite)
    traits = draw.pick(_DESCRIBED)
    thing = phrases.noun_phrase(draw, traits, Case.NOMINATIVE, determiners)
    set_subject(clause, thing)
    add_adjective(draw, clause, thing.noun.traits)
    return _Antecedent(clause, thing)


def _draw_other_verb(draw: Draw, verb: Verb, thing: NounPhrase) -> Verb:
    """Draw a verb, but not `verb`, that can have `thing` as its object."""
    options = find_verbs(Frame.ACCUSATIVE, _MEN_AND_WOMEN, thing.noun.traits)
    other = draw.pick(options)
    while other is verb:
        other = draw.pick(options)
    return other


def _draw_second_handling(draw: Draw, first: _Antecedent, family: Tenses) -> Clause:
    """Draw a clause in which someone does something to "it"."""
    verb = _draw_other_verb(draw, first.clause.verb, first.thing)
    clause = start(draw, verb, family)
    person = first.person
    if (
        person
        and not (person.pronoun or person.negative)
        and draw.chance(_SUBJECT_AGAIN)
    ):
        set_subject(clause, anaphor(person, Case.NOMINATIVE))
    else:
        draw_subject(draw, clause, _MEN_AND_WOMEN)
    add_verb_object(clause, anaphor(first.thing, Case.ACCUSATIVE))
    add_adverbials(draw, clause, 0.4, nouns=False)
    return clause


def _draw_statement_about(draw: Draw, thing: NounPhrase, family: Tenses) -> Clause:
    """Draw a clause whose subject is the pronoun of `thing`."""
    traits = thing.noun.traits
    active = bool(traits & Trait.ANIMAL) and draw.chance(0.6)
    clause = start(draw, draw_verb(draw, Trait.ANIMAL) if active else BE, family)
    set_subject(clause, anaphor(thing, Case.NOMINATIVE))
    if active:
        add_complements(draw, clause, bare)
    else:
        add_predicate(draw, clause, traits)
    add_adverbials(draw, clause, 0.4)
    return clause


def _two_clauses(draw: Draw) -> Pair:
    link = draw_link(draw)
    layout = draw.pick((coordinated, main_last, main_first, main_first))
    first_tenses = link.subordinate if layout is main_last else link.main
    second_tenses = link.subordinate if layout is main_first else link.main
    describe = draw.chance(0.35)
    first = (_draw_description if describe else _draw_handling)(draw, first_tenses)
    acts = not describe or first.thing.noun.traits & Trait.ANIMAL
    if draw.chance(0.5) and acts:
        second = _draw_statement_about(draw, first.thing, second_tenses)
    else:
        second = _draw_second_handling(draw, first, second_tenses)
    if layout is coordinated:
        return coordinated(draw, first.clause, second)
    if layout is main_last:
        return main_last(second, link, first.clause)
    return main_first(first.clause, link, second)


def _one_subject(draw: Draw) -> Pair:
    """Draw "buy the lamp and sell it", whose second verb phrase has no subject."""
    first = _draw_handling(draw, (Tense.PRESENT,))
    verb = _draw_other_verb(draw, first.clause.verb, first.thing)
    second = Clause(verb, Tense.PRESENT, first.clause.agreement)
    add_verb_object(second, anaphor(first.thing, Case.ACCUSATIVE))
    left, right = english_predicate(first.clause), english_predicate(second)
    tree = f"(S{first.clause.subject} (VP{left} (CC and){right}) (. .))"
    words = f"{german_statement(first.clause)} und{german_question(second)} ."
    return Pair(tree, words)


PATTERNS = (*(_two_clauses,) * 13, *(_one_subject,) * 3)
