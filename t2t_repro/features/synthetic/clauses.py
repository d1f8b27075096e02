"""Verbs with their subjects, objects and adverbials."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from t2t_repro.features.synthetic import adverbials, phrases, tenses
from t2t_repro.features.synthetic.draw import Draw
from t2t_repro.features.synthetic.english import preposition_leaf
from t2t_repro.features.synthetic.german import Case
from t2t_repro.features.synthetic.linearization import Clause
from t2t_repro.features.synthetic.phrases import NounPhrase
from t2t_repro.features.synthetic.pronouns import pronoun
from t2t_repro.features.synthetic.tenses import Tense, Tenses
from t2t_repro.features.synthetic.traits import PEOPLE, Trait
from t2t_repro.features.synthetic.verbs import Frame, Verb, find_verbs
from t2t_repro.features.synthetic.words import Pair

# Adds a relative clause to a noun phrase, or returns it unchanged.
Attach = Callable[[NounPhrase], NounPhrase]

_FRAME_SHARES = (
    *(Frame.INTRANSITIVE,) * 5,
    *(Frame.ACCUSATIVE,) * 12,
    *(Frame.DATIVE,) * 3,
    *(Frame.DITRANSITIVE,) * 3,
    *(Frame.PREPOSITIONAL,) * 3,
    *(Frame.MOTION,) * 3,
)
_PLACELESS = frozenset(
    {
        Frame.MOTION,
        Frame.COPULA,
        Frame.PRICE,
        Frame.THAT,
        Frame.WHETHER,
        Frame.CONTROL,
    }
)
_BENEFICIAL = frozenset({"buy", "find", "open", "carry", "wash", "repair", "sing"})


def bare(phrase: NounPhrase) -> NounPhrase:
    """Return a noun phrase without a relative clause."""
    return phrase


@functools.cache
def _tenses(verb: Verb, family: Tenses) -> Tenses:
    """Return the tenses of `family` in which the verb is used."""

    def used(tense: Tense) -> bool:
        if verb.frame is Frame.COPULA:
            return tense in (Tense.PRESENT, Tense.PAST, Tense.WILL)
        if verb.no_past and tense is Tense.PAST:
            return False
        if verb.only_simple:
            return tense in tenses.SIMPLE
        return not (verb.stative and tense is Tense.PROGRESSIVE)

    return tuple(filter(used, family))


def draw_verb(draw: Draw, subjects: Trait) -> Verb:
    """Draw a verb that subjects with these traits can have."""
    frame = draw.pick(_FRAME_SHARES)
    options = find_verbs(frame, subjects)
    return draw.pick(options or find_verbs(Frame.INTRANSITIVE, subjects))


def start(draw: Draw, verb: Verb, family: Tenses) -> Clause:
    """Return a clause with verb, tense and polarity, but without phrases."""
    clause = Clause(verb, draw.pick(_tenses(verb, family)))
    clause.negated = clause.nicht = draw.chance(0.1)
    return clause


def set_subject(clause: Clause, phrase: NounPhrase) -> None:
    """Make a noun phrase in the nominative the subject."""
    clause.subject, clause.subject_de = f" {phrase.tree}", f" {phrase.whole}"
    clause.agreement = phrase.agreement


def _modified(attach: Attach) -> float:
    return 0.0 if attach is bare else 0.1


def draw_subject(
    draw: Draw, clause: Clause, traits: Trait, attach: Attach = bare
) -> NounPhrase:
    """Draw a pronoun or a noun phrase, and make it the subject.

    Args:
        draw: The source of choices.
        clause: The clause that gets the subject.
        traits: The noun has any of these.
        attach: Adds a relative clause.
    """
    if traits & PEOPLE and draw.chance(0.28):
        phrase = pronoun(draw, Case.NOMINATIVE)
    else:
        determiners = phrases.DEFINITE if clause.negated else phrases.SUBJECT
        phrase = phrases.noun_phrase(
            draw, traits, Case.NOMINATIVE, determiners, _modified(attach)
        )
        phrase = attach(phrase)
    set_subject(clause, phrase)
    return phrase


def add_object(clause: Clause, phrase: NounPhrase) -> None:
    """Add an accusative or dative object; its relative clause goes to the end."""
    clause.objects += f" {phrase.tree}"
    words = f" {phrase.german}"
    if phrase.pronoun:
        clause.pronouns_de += words
    elif phrase.definite:
        clause.definite_de += words
    else:
        clause.indefinite_de += words
    _add_relative(clause, phrase)
    if phrase.negative:
        clause.nicht = False


def _add_relative(clause: Clause, phrase: NounPhrase) -> None:
    clause.after_de += phrase.relative
    clause.closed = clause.closed or bool(phrase.relative)


def _draw_object(
    draw: Draw, clause: Clause, traits: Trait, case: Case, attach: Attach
) -> NounPhrase:
    """Draw an object, with kein instead of nicht in a negated clause."""
    if traits & PEOPLE and draw.chance(0.25):
        return pronoun(draw, case, clause.agreement)
    determiners = phrases.NEGATED if clause.negated else phrases.OBJECT
    phrase = phrases.noun_phrase(draw, traits, case, determiners, _modified(attach))
    return attach(phrase)


def add_complements(draw: Draw, clause: Clause, attach: Attach) -> None:
    """Add the complements that the verb needs, including particles."""
    verb = clause.verb
    if verb.frame in (Frame.ACCUSATIVE, Frame.DATIVE):
        case = Case.DATIVE if verb.frame is Frame.DATIVE else Case.ACCUSATIVE
        phrase = _draw_object(draw, clause, verb.objects, case, attach)
        add_verb_object(clause, phrase)
        return
    clause.objects += verb.english.particle
    if verb.frame is Frame.DITRANSITIVE:
        _add_two_objects(draw, clause, attach)
    elif verb.frame is Frame.PREPOSITIONAL:
        phrase = _oblique(draw, clause, attach)
        _add_prepositional(clause, verb.preposition, verb.german_preposition, phrase)
    elif verb.frame is Frame.MOTION:
        direction = draw.pick(adverbials.DIRECTIONS)
        determiners = phrases.DEFINITE if clause.negated else phrases.PLAIN
        phrase = phrases.noun_phrase(
            draw, direction.traits, direction.case, determiners
        )
        phrase = attach(phrase)
        _add_prepositional(clause, direction.english, direction.german, phrase)


def add_verb_object(clause: Clause, phrase: NounPhrase) -> None:
    """Add the only object of a verb; a particle follows a pronoun object."""
    particle = clause.verb.english.particle
    preposition = clause.verb.preposition
    clause.objects += "" if phrase.pronoun else particle
    if preposition:
        tree = f"(PP {preposition_leaf(preposition)} {phrase.tree})"
        add_object(clause, replace(phrase, tree=tree))
    else:
        add_object(clause, phrase)
    clause.objects += particle if phrase.pronoun else ""


def add_objectless_verb(clause: Clause) -> None:
    """Set the particle and preposition of a verb whose object is elsewhere."""
    clause.objects = clause.verb.english.particle
    if clause.verb.preposition:
        clause.objects += f" (PP {preposition_leaf(clause.verb.preposition)})"


def _add_two_objects(draw: Draw, clause: Clause, attach: Attach) -> None:
    if draw.chance(0.35):
        recipient = pronoun(draw, Case.DATIVE, clause.agreement)
    else:
        recipient = phrases.noun_phrase(draw, PEOPLE, Case.DATIVE, phrases.DEFINITE)
    add_object(clause, recipient)
    # A bare plural here would merge with the recipient: "her books" has two readings.
    determiners = phrases.PLAIN
    if clause.negated:
        determiners = phrases.NEGATED_SINGULAR
    theme = phrases.noun_phrase(draw, clause.verb.objects, Case.ACCUSATIVE, determiners)
    add_object(clause, attach(theme))


def _oblique(draw: Draw, clause: Clause, attach: Attach) -> NounPhrase:
    """Draw the noun phrase of a prepositional object; negation stays nicht."""
    case, traits = clause.verb.german_case, clause.verb.objects
    if traits & PEOPLE and draw.chance(0.2):
        return pronoun(draw, case, clause.agreement)
    determiners = phrases.DEFINITE if clause.negated else phrases.OBJECT
    phrase = phrases.noun_phrase(draw, traits, case, determiners, _modified(attach))
    return attach(phrase)


def _add_prepositional(
    clause: Clause, word: str, german_word: str, phrase: NounPhrase
) -> None:
    complement = adverbials.prepositional(word, german_word, phrase)
    clause.objects += f" {complement.english}"
    clause.predicate_de += f" {complement.german}"
    _add_relative(clause, phrase)


def add_adverbials(
    draw: Draw, clause: Clause, scale: float = 1.0, *, nouns: bool = True
) -> None:
    """Add adverbials, each with some probability, if nothing forbids them.

    Args:
        draw: The source of choices.
        clause: The clause, complete up to its complements.
        scale: Factor on the probability of each adverbial.
        nouns: Whether places and companions are possible.
    """
    _add_frequency(draw, clause, 0.1 * scale)
    if clause.closed:
        return
    active = clause.tense not in tenses.PASSIVES
    if active and not clause.verb.stative and draw.chance(0.2 * scale):
        add_manner(clause, _draw_manner(draw, clause, nouns))
    if nouns and clause.verb.frame not in _PLACELESS and draw.chance(0.2 * scale):
        place = _draw_prepositional(draw, draw.pick(adverbials.PLACES))
        clause.place, clause.place_de = f" {place.english}", f" {place.german}"
    momentary = not clause.verb.only_simple or clause.verb.frame is Frame.COPULA
    if momentary and not clause.adverb and draw.chance(0.3 * scale):
        time = adverbials.time(draw, clause.tense)
        clause.time, clause.time_de = f" {time.english}", f" {time.german}"


def _add_frequency(draw: Draw, clause: Clause, share: float) -> None:
    # "never" beside another negation would make the sentence odd.
    negative = clause.negated or "(DT no)" in clause.subject
    usual = clause.tense in tenses.SIMPLE and clause.verb.frame is not Frame.PRICE
    if usual and not negative and draw.chance(share):
        adverb = draw.pick(adverbials.FREQUENCY)
        clause.adverb, clause.adverb_de = f" {adverb.english}", f" {adverb.german}"


def add_manner(clause: Clause, manner: Pair) -> None:
    """Add an adverbial of manner."""
    clause.manner, clause.manner_de = f" {manner.english}", f" {manner.german}"


def _draw_manner(draw: Draw, clause: Clause, nouns: bool) -> Pair:
    """Draw an adverb of manner or, with a noun, a companion."""
    adverbs_only = clause.verb.frame in (Frame.PREPOSITIONAL, Frame.MOTION) or not nouns
    if adverbs_only or clause.verb.subjects & ~PEOPLE or draw.chance(0.5):
        return draw.pick(adverbials.MANNER)
    companions = adverbials.COMPANIONS
    if clause.verb.english.base in _BENEFICIAL:
        companions = (*companions, adverbials.BENEFICIARY)
    return _draw_prepositional(draw, draw.pick(companions))


def _draw_prepositional(draw: Draw, preposition: adverbials.Preposition) -> Pair:
    phrase = phrases.noun_phrase(
        draw, preposition.traits, preposition.case, phrases.PLAIN
    )
    return adverbials.prepositional(preposition.english, preposition.german, phrase)
