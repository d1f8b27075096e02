"""Whole clauses and relative clauses, which can contain each other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from t2t_repro.features.synthetic import english, phrases, tenses
from t2t_repro.features.synthetic.clauses import (
    Attach,
    Clause,
    add_adverbials,
    add_agent,
    add_complements,
    add_objectless_verb,
    add_predicate,
    add_price,
    bare,
    draw_subject,
    draw_verb,
    english_statement,
    german_subordinate,
    start,
)
from t2t_repro.features.synthetic.german import (
    RELATIVE,
    Agreement,
    Case,
    Gender,
    noun_form,
)
from t2t_repro.features.synthetic.lexicon import BE, COST, Frame, Verb, find_verbs
from t2t_repro.features.synthetic.phrases import NounPhrase
from t2t_repro.features.synthetic.tenses import Tense, Tenses
from t2t_repro.features.synthetic.word_traits import PEOPLE, Draw, Pair, Trait

MAX_DEPTH = 3
_RELATIVE_SHARE = 0.19
_NESTED_SHARE = 0.36
_PASSIVES: dict[Tenses, Tenses] = {
    tenses.PAST: (Tense.PASSIVE,),
    tenses.NOW: (Tense.PASSIVE_MUST, Tense.PASSIVE_PERFECT),
    tenses.PRESENT: (Tense.PASSIVE_MUST, Tense.PASSIVE_PERFECT),
    tenses.ANY: (
        *(Tense.PASSIVE,) * 3,
        Tense.PASSIVE_MUST,
        Tense.PASSIVE_PERFECT,
    ),
}


def relative(draw: Draw, depth: int, share: float = _RELATIVE_SHARE) -> Attach:
    """Return a function that adds relative clauses to noun phrases.

    Args:
        draw: The source of choices.
        depth: Maximum number of relative clauses within each other.
        share: Share of the noun phrases that get one.
    """
    if not depth:
        return bare

    def attach(phrase: NounPhrase) -> NounPhrase:
        if phrase.pronoun or phrase.heavy or not draw.chance(share):
            return phrase
        return with_relative(draw, phrase, depth)

    return attach


def _nested(draw: Draw, depth: int) -> Attach:
    return relative(draw, depth, _NESTED_SHARE)


def _start_passive(draw: Draw, objects: Trait, family: Tenses) -> Clause:
    options = find_verbs(Frame.ACCUSATIVE, PEOPLE, objects)
    verb = draw.pick(options)
    while verb.stative or verb.preposition:
        verb = draw.pick(options)
    return Clause(verb, draw.pick(_PASSIVES[family]))


_PASSIVE_SUBJECTS = PEOPLE | Trait.ANIMAL | Trait.THING | Trait.FOOD | Trait.VISITABLE
_DESCRIBED = (
    PEOPLE,
    Trait.MAN | Trait.WOMAN,
    Trait.ANIMAL,
    *(Trait.THING,) * 2,
    Trait.FOOD,
    Trait.PLACE,
)


def draw_clause(draw: Draw, family: Tenses, depth: int) -> Clause:
    """Draw a whole clause with a subject.

    Args:
        draw: The source of choices.
        family: Tenses to draw from: `tenses.NOW`, `PRESENT`, `PAST` or `ANY`.
        depth: Maximum number of relative clauses within each other.
    """
    attach = relative(draw, depth)
    kind = draw.below(100)
    if kind < 2 and family != tenses.PAST:
        clause = Clause(COST, Tense.PRESENT)
        draw_subject(draw, clause, Trait.THING)
        add_price(draw, clause)
    elif kind < 16:
        clause = start(draw, BE, family)
        subject = draw_subject(draw, clause, draw.pick(_DESCRIBED), attach)
        # A pronoun's noun has no traits.
        add_predicate(draw, clause, subject.noun.traits or Trait.MAN | Trait.WOMAN)
        add_adverbials(draw, clause, 0.5)
    elif kind < 24:
        clause = _start_passive(draw, _PASSIVE_SUBJECTS, family)
        draw_subject(draw, clause, clause.verb.objects, attach)
        add_agent(draw, clause)
        add_adverbials(draw, clause)
    else:
        clause = start(draw, draw_verb(draw, PEOPLE | Trait.ANIMAL), family)
        draw_subject(draw, clause, clause.verb.subjects, attach)
        add_complements(draw, clause, attach)
        add_adverbials(draw, clause)
    return clause


def _gap_clause(draw: Draw, traits: Trait, agreement: Agreement, depth: int) -> Clause:
    """Draw a clause whose subject is the relative pronoun."""
    kind = draw.below(4)
    if kind and traits & (PEOPLE | Trait.ANIMAL):
        clause = start(draw, draw_verb(draw, traits), tenses.ANY)
        clause.agreement = agreement
        add_complements(draw, clause, _nested(draw, depth))
    elif kind < 2 or traits & Trait.PLACE:
        clause = start(draw, BE, tenses.ANY)
        clause.agreement = agreement
        add_predicate(draw, clause, traits)
    else:
        clause = _start_passive(draw, traits, tenses.ANY)
        clause.agreement = agreement
        add_agent(draw, clause)
    add_adverbials(draw, clause, 0.5)
    return clause


def _start_with_subject(draw: Draw, verb: Verb, depth: int) -> Clause:
    clause = start(draw, verb, tenses.ANY)
    draw_subject(draw, clause, verb.subjects, _nested(draw, depth))
    return clause


def _join(front: str, pronoun: str, clause: Clause) -> Pair:
    """Put a relative pronoun, in both languages, before its clause."""
    tree = f"(SBAR {front} {english_statement(clause)})"
    return Pair(tree, pronoun + german_subordinate(clause))


# Draws a relative clause for a noun phrase, with at most `depth` more in it.
_Relative = Callable[[Draw, NounPhrase, int], Pair]


def _subject_relative(draw: Draw, phrase: NounPhrase, depth: int) -> Pair:
    traits = phrase.noun.traits
    clause = _gap_clause(draw, traits, phrase.agreement, depth)
    who = "(WP who)" if traits & PEOPLE else "(WDT that)"
    return _join(f"(WHNP {who})", _pronoun(phrase, Case.NOMINATIVE), clause)


def _object_relative(
    draw: Draw, phrase: NounPhrase, depth: int, frame: Frame, case: Case
) -> Pair:
    traits = phrase.noun.traits
    verb = draw.pick(find_verbs(frame, PEOPLE, traits))
    clause = _start_with_subject(draw, verb, depth)
    add_objectless_verb(clause)
    add_adverbials(draw, clause, 0.5)
    whom = "(WP whom)" if traits & PEOPLE else "(WDT that)"
    return _join(f"(WHNP {whom})", _pronoun(phrase, case), clause)


_accusative_relative, _dative_relative = (
    functools.partial(_object_relative, frame=frame, case=case)
    for frame, case in (
        (Frame.ACCUSATIVE, Case.ACCUSATIVE),
        (Frame.DATIVE, Case.DATIVE),
    )
)


def _prepositional_relative(draw: Draw, phrase: NounPhrase, depth: int) -> Pair:
    verb = draw.pick(find_verbs(Frame.PREPOSITIONAL, PEOPLE, phrase.noun.traits))
    clause = _start_with_subject(draw, verb, depth)
    add_adverbials(draw, clause, 0.5)
    whom = "(WP whom)" if phrase.noun.traits & PEOPLE else "(WDT which)"
    front = f"(WHPP (IN {verb.preposition}) (WHNP {whom}))"
    pronoun = f"{verb.german_preposition} {_pronoun(phrase, verb.german_case)}"
    return _join(front, pronoun, clause)


def _place_relative(draw: Draw, phrase: NounPhrase, depth: int) -> Pair:
    frame = draw.pick((Frame.INTRANSITIVE, Frame.ACCUSATIVE))
    verb = draw.pick(find_verbs(frame, PEOPLE))
    clause = _start_with_subject(draw, verb, depth)
    add_complements(draw, clause, bare)
    inside = phrase.noun.traits & Trait.ENTERABLE
    word, german = ("in", "in") if inside else ("near", "bei")
    front = f"(WHPP (IN {word}) (WHNP (WDT which)))"
    return _join(front, f"{german} {_pronoun(phrase, Case.DATIVE)}", clause)


def _possessive_relative(draw: Draw, phrase: NounPhrase, depth: int) -> Pair:
    owned = draw.pick((Trait.RELATION, Trait.ANIMAL, Trait.THING))
    noun = phrases.draw_noun(draw, owned)
    plural = draw.chance(0.3)
    agreement = Agreement.THIRD_PLURAL if plural else Agreement.THIRD
    clause = _gap_clause(draw, noun.traits, agreement, depth)
    front = f"(WHNP (WP$ whose){english.noun_leaves(noun, plural)})"
    whose = _pronoun(phrase, Case.GENITIVE)
    words = f"{whose} {noun_form(noun, Case.NOMINATIVE, plural)}"
    return _join(front, words, clause)


def _pronoun(phrase: NounPhrase, case: Case) -> str:
    return RELATIVE[case][Gender.PLURAL if phrase.plural else phrase.noun.gender]


_FOR_PEOPLE: tuple[_Relative, ...] = (
    *(_subject_relative,) * 6,
    *(_accusative_relative,) * 4,
    *(_dative_relative,) * 2,
    *(_prepositional_relative,) * 2,
    *(_possessive_relative,) * 2,
)
_FOR_ANIMALS: tuple[_Relative, ...] = (
    *(_subject_relative,) * 3,
    *(_accusative_relative,) * 3,
)
_FOR_THINGS: tuple[_Relative, ...] = (*(_accusative_relative,) * 3, _subject_relative)
_FOR_PLACES: tuple[_Relative, ...] = (
    *(_place_relative,) * 3,
    _accusative_relative,
    _subject_relative,
)


def _kinds(traits: Trait) -> tuple[_Relative, ...]:
    """Return the kinds of relative clauses of a noun, the frequent ones repeated."""
    if traits & PEOPLE:
        return _FOR_PEOPLE
    if traits & Trait.ANIMAL:
        return _FOR_ANIMALS
    return _FOR_PLACES if traits & Trait.PLACE else _FOR_THINGS


def with_relative(draw: Draw, phrase: NounPhrase, depth: int) -> NounPhrase:
    """Add a relative clause to a noun phrase.

    Args:
        draw: The source of choices.
        phrase: The noun phrase.
        depth: Maximum number of relative clauses within each other.
    """
    clause = draw.pick(_kinds(phrase.noun.traits))(draw, phrase, depth - 1)
    return replace(
        phrase,
        tree=f"(NP {phrase.tree} {clause.english})",
        relative=f" , {clause.german} ,",
        heavy=True,
    )
