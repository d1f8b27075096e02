"""Whole clauses and relative clauses, which hold each other."""

from __future__ import annotations

import functools

from . import english, phrases
from .clauses import (
    ANY,
    NOW,
    PAST,
    PRESENT,
    Attach,
    add_adverbials,
    add_complements,
    bare,
    draw_subject,
    draw_verb,
    start,
    verbs,
)
from .german import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    PLURAL,
    RELATIVE,
    THIRD,
    THIRD_PLURAL,
    cardinal,
    contract,
    noun_form,
)
from .lexicon import ADJECTIVES, Adjective
from .linearization import (
    Clause,
    english_predicate,
    english_statement,
    german_subordinate,
)
from .phrases import Draw, NounPhrase
from .verbs import BE, COST

MAX_DEPTH = 3
_PEOPLE = phrases.PEOPLE
_RELATIVE_SHARE = 0.19
_NESTED_SHARE = 0.36
_PASSIVES: dict[tuple[str, ...], tuple[str, ...]] = {
    PAST: ("passive",),
    NOW: ("passive must", "passive perfect"),
    PRESENT: ("passive must", "passive perfect"),
    ANY: ("passive", "passive", "passive", "passive must", "passive perfect"),
}


def relative(draw: Draw, depth: int, share: float = _RELATIVE_SHARE) -> Attach:
    """Returns what attaches relative clauses.

    Args:
        draw: the source of choices.
        depth: how many of them may stand within each other.
        share: of the noun phrases that get one.
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


@functools.cache
def _adjectives(tags: str, comparative: bool) -> tuple[Adjective, ...]:
    return tuple(
        a
        for a in ADJECTIVES
        if set(a.tags) & set(tags) and (a.english_comparative or not comparative)
    )


def add_predicate(draw: Draw, clause: Clause, tags: str) -> None:
    """Adds what follows "be": an adjective, a comparison or an age."""
    kind = draw.below(10)
    if kind == 0 and set(tags) & set(_PEOPLE):
        number = 2 + draw.below(97)
        years = f"(NP (CD {english.cardinal(number)}) (NNS years))"
        clause.objects = f" (ADJP {years} (JJ old))"
        clause.predicate_de = f" {cardinal(number)} Jahre alt"
    elif kind < 3:
        _add_comparison(draw, clause, tags)
    else:
        add_adjective(draw, clause, tags)


def add_adjective(draw: Draw, clause: Clause, tags: str) -> None:
    """Adds a predicate adjective that suits a subject with these tags."""
    adjective = draw.pick(_adjectives(tags, False))
    clause.objects = f" (ADJP (JJ {adjective.english}))"
    clause.predicate_de = f" {adjective.german}"


def _add_comparison(draw: Draw, clause: Clause, tags: str) -> None:
    adjective = draw.pick(_adjectives(tags, True))
    standard = phrases.noun_phrase(draw, tags, NOMINATIVE, phrases.DEFINITE)
    more, _, rest = adjective.english_comparative.rpartition(" ")
    word = f"(RBR {more}) (JJ {rest})" if more else f"(JJR {rest})"
    clause.objects = f" (ADJP {word} (PP (IN than) {standard.tree}))"
    clause.predicate_de = f" {adjective.german_comparative} als {standard.german}"


def _add_price(draw: Draw, clause: Clause) -> None:
    price = 2 + draw.below(998)
    clause.objects = f" (NP (CD {price}) (NNS euros))"
    clause.predicate_de = f" {price} Euro"


def _add_agent(draw: Draw, clause: Clause) -> None:
    clause.objects = clause.verb.english.particle
    if draw.chance(0.6):
        agent = phrases.noun_phrase(draw, _PEOPLE, DATIVE, phrases.PLAIN)
        clause.objects += f" (PP (IN by) {agent.tree})"
        clause.manner_de = f" {contract('von', agent.german)}"


def _start_passive(draw: Draw, tags: str, tenses: tuple[str, ...]) -> Clause:
    options = verbs("accusative", _PEOPLE, tags)
    verb = draw.pick(options)
    while verb.stative or verb.preposition:
        verb = draw.pick(options)
    return Clause(verb, draw.pick(_PASSIVES[tenses]))


def draw_clause(draw: Draw, tenses: tuple[str, ...], depth: int) -> Clause:
    """Draws a whole clause with subject.

    Args:
        draw: the source of choices.
        tenses: NOW, PRESENT, PAST or ANY.
        depth: how many relative clauses may be nested in it.
    """
    attach = relative(draw, depth)
    kind = draw.below(100)
    if kind < 2 and tenses is not PAST:
        clause = Clause(COST, "present")
        draw_subject(draw, clause, "t")
        _add_price(draw, clause)
    elif kind < 16:
        clause = start(draw, BE, tenses)
        tags = draw.pick(("hqx", "hq", "a", "t", "t", "f", "l"))
        subject = draw_subject(draw, clause, tags, attach)
        add_predicate(draw, clause, subject.noun.tags or "hq")
        add_adverbials(draw, clause, 0.5)
    elif kind < 24:
        clause = _start_passive(draw, "hqxatfv", tenses)
        draw_subject(draw, clause, clause.verb.objects, attach)
        _add_agent(draw, clause)
        add_adverbials(draw, clause)
    else:
        clause = start(draw, draw_verb(draw, "hqxa"), tenses)
        draw_subject(draw, clause, clause.verb.subjects, attach)
        add_complements(draw, clause, attach)
        add_adverbials(draw, clause)
    return clause


def _gap_clause(draw: Draw, tags: str, agreement: int, depth: int) -> Clause:
    """Draws a clause whose subject is the relative pronoun."""
    kind = draw.below(4)
    if kind and set(tags) & set("hqxa"):
        clause = start(draw, draw_verb(draw, tags), ANY)
        clause.agreement = agreement
        add_complements(draw, clause, _nested(draw, depth))
    elif kind < 2 or "l" in tags:
        clause = start(draw, BE, ANY)
        clause.agreement = agreement
        add_predicate(draw, clause, tags)
    else:
        clause = _start_passive(draw, tags, ANY)
        clause.agreement = agreement
        _add_agent(draw, clause)
    add_adverbials(draw, clause, 0.5)
    return clause


def _subject_relative(draw: Draw, phrase: NounPhrase, depth: int) -> tuple[str, str]:
    tags = phrase.noun.tags
    clause = _gap_clause(draw, tags, phrase.agreement, depth)
    who = "(WP who)" if set(tags) & set(_PEOPLE) else "(WDT that)"
    tree = f"(SBAR (WHNP {who}) (S{english_predicate(clause)}))"
    return tree, _pronoun(phrase, NOMINATIVE) + german_subordinate(clause)


def _object_relative(
    draw: Draw, phrase: NounPhrase, depth: int, frame: str, case: int
) -> tuple[str, str]:
    tags = phrase.noun.tags
    clause = start(draw, draw.pick(verbs(frame, _PEOPLE, tags)), ANY)
    draw_subject(draw, clause, clause.verb.subjects, _nested(draw, depth))
    clause.objects = clause.verb.english.particle
    preposition = clause.verb.preposition
    if preposition:
        tag = "TO" if preposition == "to" else "IN"
        clause.objects += f" (PP ({tag} {preposition}))"
    add_adverbials(draw, clause, 0.5)
    whom = "(WP whom)" if set(tags) & set(_PEOPLE) else "(WDT that)"
    tree = f"(SBAR (WHNP {whom}) {english_statement(clause)})"
    return tree, _pronoun(phrase, case) + german_subordinate(clause)


def _prepositional_relative(
    draw: Draw, phrase: NounPhrase, depth: int
) -> tuple[str, str]:
    verb = draw.pick(verbs("prepositional", _PEOPLE, phrase.noun.tags))
    clause = start(draw, verb, ANY)
    draw_subject(draw, clause, verb.subjects, _nested(draw, depth))
    add_adverbials(draw, clause, 0.5)
    case = DATIVE if verb.german_case == "d" else ACCUSATIVE
    person = set(phrase.noun.tags) & set(_PEOPLE)
    whom = "(WP whom)" if person else "(WDT which)"
    front = f"(WHPP (IN {verb.preposition}) (WHNP {whom}))"
    tree = f"(SBAR {front} {english_statement(clause)})"
    pronoun = f"{verb.german_preposition} {_pronoun(phrase, case)}"
    return tree, pronoun + german_subordinate(clause)


def _place_relative(draw: Draw, phrase: NounPhrase, depth: int) -> tuple[str, str]:
    frame = draw.pick(("intransitive", "accusative"))
    clause = start(draw, draw.pick(verbs(frame, _PEOPLE)), ANY)
    draw_subject(draw, clause, clause.verb.subjects, _nested(draw, depth))
    add_complements(draw, clause, bare)
    inside = "e" in phrase.noun.tags
    word, german = ("in", "in") if inside else ("near", "bei")
    front = f"(WHPP (IN {word}) (WHNP (WDT which)))"
    tree = f"(SBAR {front} {english_statement(clause)})"
    return tree, f"{german} {_pronoun(phrase, DATIVE)}{german_subordinate(clause)}"


def _possessive_relative(draw: Draw, phrase: NounPhrase, depth: int) -> tuple[str, str]:
    noun = phrases.draw_noun(draw, draw.pick(("y", "a", "t")))
    plural = draw.chance(0.3)
    agreement = THIRD_PLURAL if plural else THIRD
    clause = _gap_clause(draw, noun.tags, agreement, depth)
    word = noun.english_plural if plural else noun.english
    front = f"(WHNP (WP$ whose){english.noun_leaves(word, plural)})"
    tree = f"(SBAR {front} (S{english_predicate(clause)}))"
    words = f"{_pronoun(phrase, GENITIVE)} {noun_form(noun, NOMINATIVE, plural)}"
    return tree, words + german_subordinate(clause)


def _pronoun(phrase: NounPhrase, case: int) -> str:
    plural = phrase.agreement == THIRD_PLURAL
    return RELATIVE[case][PLURAL if plural else phrase.noun.gender]


_PERSON_KINDS = "ssssssooooddppww"
_KINDS = {"a": "sssooo", "t": "ooos", "f": "ooos", "l": "iiios"}


def with_relative(draw: Draw, phrase: NounPhrase, depth: int) -> NounPhrase:
    """Puts a relative clause behind `phrase`; at most `depth` are nested."""
    tags = phrase.noun.tags
    kinds = _PERSON_KINDS if set(tags) & set(_PEOPLE) else _KINDS[tags[0]]
    kind, inner = draw.pick(kinds), depth - 1
    if kind == "s":
        tree, german = _subject_relative(draw, phrase, inner)
    elif kind == "o":
        tree, german = _object_relative(draw, phrase, inner, "accusative", ACCUSATIVE)
    elif kind == "d":
        tree, german = _object_relative(draw, phrase, inner, "dative", DATIVE)
    elif kind == "p":
        tree, german = _prepositional_relative(draw, phrase, inner)
    elif kind == "i":
        tree, german = _place_relative(draw, phrase, inner)
    else:
        tree, german = _possessive_relative(draw, phrase, inner)
    return phrase._replace(
        tree=f"(NP {phrase.tree} {tree})", relative=f" , {german} ,", heavy=True
    )
