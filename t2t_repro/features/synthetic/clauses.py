"""Clauses: the verb with its subject, objects and adverbials, and their order.

English and German read the parts of a clause in different orders.
The German side follows the topological fields: front field, finite verb, middle field,
right bracket, after field. Every part carries its leading space or is empty.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from t2t_repro.features.synthetic import english, lexicon, phrases, tenses
from t2t_repro.features.synthetic.english import VerbGroup, preposition_leaf, verb_group
from t2t_repro.features.synthetic.german import (
    Agreement,
    Case,
    VerbBrackets,
    cardinal,
    contract,
    verb_brackets,
    zu_infinitive,
)
from t2t_repro.features.synthetic.lexicon import Frame, Verb, find_verbs
from t2t_repro.features.synthetic.phrases import NounPhrase
from t2t_repro.features.synthetic.pronouns import draw_pronoun
from t2t_repro.features.synthetic.tenses import Tense, Tenses
from t2t_repro.features.synthetic.word_traits import PEOPLE, Draw, Pair, Trait

# Shares of pronouns among noun phrases that are people.
_SUBJECT_PRONOUNS = 0.28
_OBJECT_PRONOUNS = 0.25
_PREPOSITION_PRONOUNS = 0.2
_RECIPIENT_PRONOUNS = 0.35


@dataclass(slots=True)
class Clause:
    """A clause before its words are put in order.

    The English parts are trees, the German ones (`*_de`) are words.

    Attributes:
        verb: The verb.
        tense: Its tense.
        agreement: Person and number of the subject.
        negated: Whether English negates the verb.
        nicht: Whether German has nicht; with kein it does not.
        closed: Whether the English clause ends in a relative or other clause, so
            that nothing can follow.
        subject: The subject.
        adverb: Adverb of frequency, before the main verb.
        objects: Objects, particle and predicate, in order.
        manner: Manner and company.
        place: Place.
        time: Time.
        tail: A clause that depends on the verb.
        subject_de: The subject.
        pronouns_de: Pronoun objects, first in the middle field.
        time_de: Time.
        definite_de: Definite objects, before adverb and nicht.
        adverb_de: Adverb of frequency.
        indefinite_de: Indefinite objects.
        manner_de: Manner and company.
        place_de: Place.
        predicate_de: Predicate, direction or prepositional object.
        after_de: Clauses after the right bracket.
    """

    verb: Verb
    tense: Tense
    agreement: Agreement = Agreement.THIRD
    negated: bool = False
    nicht: bool = False
    closed: bool = False
    subject: str = ""
    adverb: str = ""
    objects: str = ""
    manner: str = ""
    place: str = ""
    time: str = ""
    tail: str = ""
    subject_de: str = ""
    pronouns_de: str = ""
    time_de: str = ""
    definite_de: str = ""
    adverb_de: str = ""
    indefinite_de: str = ""
    manner_de: str = ""
    place_de: str = ""
    predicate_de: str = ""
    after_de: str = ""


def _complements(clause: Clause) -> str:
    c = clause
    return f"{c.objects}{c.manner}{c.place}{c.time}{c.tail}"


def _verb_group(clause: Clause, *, support: bool) -> VerbGroup:
    return verb_group(clause.verb.english, clause.tense, clause.agreement, support)


def _core(clause: Clause, group: VerbGroup) -> str:
    """Return the main verb, after the auxiliary, and all that follows it."""
    return (
        f"{' (RB not)' if clause.negated else ''}{clause.adverb}{group.core}"
        f"{_complements(clause)}{')' * group.closers}"
    )


def english_predicate(clause: Clause) -> str:
    """Return the verb phrase of a statement."""
    group = _verb_group(clause, support=clause.negated)
    return f" (VP{group.auxiliary}{_core(clause, group)})"


def english_statement(clause: Clause) -> str:
    """Return "(S subject verb-phrase)" without punctuation."""
    return f"(S{clause.subject}{english_predicate(clause)})"


def english_question(clause: Clause) -> str:
    """Return auxiliary, subject and verb phrase: the children of an (SQ ...)."""
    group = _verb_group(clause, support=True)
    return f"{group.auxiliary}{clause.subject}{_core(clause, group)}"


def english_infinitive(clause: Clause) -> str:
    """Return the tree of "to buy a book"."""
    verb = f"(VB {clause.verb.english.base}){_complements(clause)}"
    return f" (S (VP (TO to) (VP {verb})))"


def _brackets(clause: Clause) -> VerbBrackets:
    tense = clause.tense
    if tense is Tense.MUST and clause.negated:
        tense = Tense.MUST_NOT
    return verb_brackets(clause.verb.german, tense, clause.agreement)


def _middle(clause: Clause) -> str:
    c = clause
    no = " nicht" if c.nicht else ""
    return (
        f"{c.pronouns_de}{c.time_de}{c.definite_de}{c.adverb_de}{no}{c.indefinite_de}"
        f"{c.manner_de}{c.place_de}{c.predicate_de}"
    )


def _from_finite_verb(clause: Clause, subject: str) -> str:
    """Return the finite verb of a main clause and all that follows it."""
    brackets = _brackets(clause)
    right = f" {brackets.right}" if brackets.right else ""
    return f" {brackets.finite}{subject}{_middle(clause)}{right}{clause.after_de}"


def german_statement(clause: Clause, front: str = "") -> str:
    """Return a main clause with the verb in second place.

    Args:
        clause: The clause.
        front: The words of the front field; the subject if empty.
    """
    if front:
        return f"{front}{_from_finite_verb(clause, clause.subject_de)}"
    return f"{clause.subject_de}{_from_finite_verb(clause, '')}"


def german_question(clause: Clause) -> str:
    """Return a clause with the verb first."""
    return _from_finite_verb(clause, clause.subject_de)


def german_subordinate(clause: Clause) -> str:
    """Return a clause with the verb last."""
    last = _brackets(clause).last
    return f"{clause.subject_de}{_middle(clause)} {last}{clause.after_de}"


def german_infinitive(clause: Clause) -> str:
    """Return "ein Buch zu kaufen", without the subject."""
    return f"{_middle(clause)} {zu_infinitive(clause.verb.german)}{clause.after_de}"


def add_predicate(draw: Draw, clause: Clause, traits: Trait) -> None:
    """Add an adjective, a comparison or an age after "be"."""
    kind = draw.below(10)
    if kind == 0 and traits & PEOPLE:
        number = 2 + draw.below(97)
        years = f"(NP (CD {english.cardinal(number)}) (NNS years))"
        clause.objects = f" (ADJP {years} (JJ old))"
        clause.predicate_de = f" {cardinal(number)} Jahre alt"
    elif kind < 3:
        _add_comparison(draw, clause, traits)
    else:
        add_adjective(draw, clause, traits)


def add_adjective(draw: Draw, clause: Clause, traits: Trait) -> None:
    """Add a predicate adjective for a subject with these traits."""
    adjective = draw.pick(lexicon.adjectives(traits))
    clause.objects = f" (ADJP (JJ {adjective.english}))"
    clause.predicate_de = f" {adjective.german}"


def _add_comparison(draw: Draw, clause: Clause, traits: Trait) -> None:
    adjective = draw.pick(lexicon.comparable_adjectives(traits))
    standard = phrases.noun_phrase(draw, traits, Case.NOMINATIVE, phrases.DEFINITE)
    more, _, rest = adjective.english_comparative.rpartition(" ")
    word = f"(RBR {more}) (JJ {rest})" if more else f"(JJR {rest})"
    clause.objects = f" (ADJP {word} (PP (IN than) {standard.tree}))"
    clause.predicate_de = f" {adjective.german_comparative} als {standard.german}"


def add_price(draw: Draw, clause: Clause) -> None:
    """Add a price after "cost"."""
    price = 2 + draw.below(998)
    clause.objects = f" (NP (CD {price}) (NNS euros))"
    clause.predicate_de = f" {price} Euro"


def add_agent(draw: Draw, clause: Clause) -> None:
    """Add the particle of a passive verb and, with some probability, its agent."""
    clause.objects = clause.verb.english.particle
    if draw.chance(0.6):
        agent = phrases.noun_phrase(draw, PEOPLE, Case.DATIVE, phrases.PLAIN)
        clause.objects += f" (PP (IN by) {agent.tree})"
        clause.manner_de = f" {contract('von', agent.german)}"


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
    """Return the tenses of `family` that the verb can have."""

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


def _draw_attached(
    draw: Draw,
    traits: Trait,
    case: Case,
    determiners: Sequence[phrases.Determiner],
    attach: Attach,
) -> NounPhrase:
    """Draw a noun phrase, and attach what follows its noun."""
    modified = 0.0 if attach is bare else 0.1
    return attach(phrases.noun_phrase(draw, traits, case, determiners, modified))


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
    phrase = draw_pronoun(draw, _SUBJECT_PRONOUNS, traits, Case.NOMINATIVE)
    if phrase is None:
        determiners = phrases.DEFINITE if clause.negated else phrases.SUBJECT
        phrase = _draw_attached(draw, traits, Case.NOMINATIVE, determiners, attach)
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
    draw: Draw,
    clause: Clause,
    case: Case,
    attach: Attach,
    pronoun_share: float,
    negated: Sequence[phrases.Determiner],
) -> NounPhrase:
    """Draw an object.

    Args:
        draw: The source of choices.
        clause: The clause that gets the object.
        case: The case.
        attach: Adds a relative clause.
        pronoun_share: Share of the pronouns among objects that are people.
        negated: Determiners in a negated clause.
    """
    traits = clause.verb.objects
    pronoun = draw_pronoun(draw, pronoun_share, traits, case, clause.agreement)
    determiners = negated if clause.negated else phrases.OBJECT
    return pronoun or _draw_attached(draw, traits, case, determiners, attach)


def add_complements(draw: Draw, clause: Clause, attach: Attach) -> None:
    """Add the complements that the verb needs, including particles."""
    verb = clause.verb
    if verb.frame in (Frame.ACCUSATIVE, Frame.DATIVE):
        case = Case.DATIVE if verb.frame is Frame.DATIVE else Case.ACCUSATIVE
        phrase = _draw_object(
            draw, clause, case, attach, _OBJECT_PRONOUNS, phrases.NEGATED
        )
        add_verb_object(clause, phrase)
        return
    clause.objects += verb.english.particle
    if verb.frame is Frame.DITRANSITIVE:
        _add_two_objects(draw, clause, attach)
    elif verb.frame is Frame.PREPOSITIONAL:
        # Negation stays nicht.
        case = verb.german_case
        share = _PREPOSITION_PRONOUNS
        phrase = _draw_object(draw, clause, case, attach, share, phrases.DEFINITE)
        _add_prepositional(clause, verb.preposition, verb.german_preposition, phrase)
    elif verb.frame is Frame.MOTION:
        direction = draw.pick(phrases.DIRECTIONS)
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
    recipient = draw_pronoun(
        draw, _RECIPIENT_PRONOUNS, PEOPLE, Case.DATIVE, clause.agreement
    )
    add_object(
        clause,
        recipient or phrases.noun_phrase(draw, PEOPLE, Case.DATIVE, phrases.DEFINITE),
    )
    # A bare plural here would merge with the recipient: "her books" has two readings.
    determiners = phrases.PLAIN
    if clause.negated:
        determiners = phrases.NEGATED_SINGULAR
    theme = phrases.noun_phrase(draw, clause.verb.objects, Case.ACCUSATIVE, determiners)
    add_object(clause, attach(theme))


def _add_prepositional(
    clause: Clause, word: str, german_word: str, phrase: NounPhrase
) -> None:
    complement = phrases.prepositional(word, german_word, phrase)
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
        place = _draw_prepositional(draw, draw.pick(phrases.PLACES))
        clause.place, clause.place_de = f" {place.english}", f" {place.german}"
    momentary = not clause.verb.only_simple or clause.verb.frame is Frame.COPULA
    if momentary and not clause.adverb and draw.chance(0.3 * scale):
        time = phrases.time_adverbial(draw, clause.tense)
        clause.time, clause.time_de = f" {time.english}", f" {time.german}"


def _add_frequency(draw: Draw, clause: Clause, share: float) -> None:
    # "never" beside another negation would make the sentence odd.
    negative = clause.negated or "(DT no)" in clause.subject
    usual = clause.tense in tenses.SIMPLE and clause.verb.frame is not Frame.PRICE
    if usual and not negative and draw.chance(share):
        adverb = draw.pick(phrases.FREQUENCY)
        clause.adverb, clause.adverb_de = f" {adverb.english}", f" {adverb.german}"


def add_manner(clause: Clause, manner: Pair) -> None:
    """Add an adverbial of manner."""
    clause.manner, clause.manner_de = f" {manner.english}", f" {manner.german}"


def _draw_manner(draw: Draw, clause: Clause, nouns: bool) -> Pair:
    """Draw an adverb of manner or, with a noun, a companion."""
    adverbs_only = clause.verb.frame in (Frame.PREPOSITIONAL, Frame.MOTION) or not nouns
    if adverbs_only or clause.verb.subjects & ~PEOPLE or draw.chance(0.5):
        return draw.pick(phrases.MANNER)
    companions = phrases.COMPANIONS
    if clause.verb.english.base in _BENEFICIAL:
        companions = (*companions, phrases.BENEFICIARY)
    return _draw_prepositional(draw, draw.pick(companions))


def _draw_prepositional(draw: Draw, preposition: phrases.Preposition) -> Pair:
    phrase = phrases.noun_phrase(
        draw, preposition.traits, preposition.case, phrases.PLAIN
    )
    return phrases.prepositional(preposition.english, preposition.german, phrase)
