"""What clauses say: verbs with their subjects, objects and adverbials."""

from __future__ import annotations

import functools
from collections.abc import Callable

from . import adverbials, phrases
from .german import ACCUSATIVE, DATIVE, NOMINATIVE
from .linearization import Clause
from .phrases import Draw, NounPhrase
from .verbs import VERBS, Verb

# Puts a relative clause behind a noun phrase, or leaves it as it is.
Attach = Callable[[NounPhrase], NounPhrase]

NOW = ("present",) * 5 + ("progressive",) * 2 + ("can", "can", "must", "want")
PRESENT = (*NOW, "will", "will", "should")
PAST = ("past",) * 6 + ("could", "had to", "wanted")
ANY = PRESENT + PAST + ("perfect",) * 4
_SIMPLE = frozenset({"present", "past"})
_FRAME_SHARES = (
    *("intransitive",) * 5,
    *("accusative",) * 12,
    *("dative",) * 3,
    *("ditransitive",) * 3,
    *("prepositional",) * 3,
    *("motion",) * 3,
)
_PLACELESS = frozenset({"motion", "copula", "price", "that", "whether", "control"})
_BENEFICIAL = frozenset({"buy", "find", "open", "carry", "wash", "repair", "sing"})


def bare(phrase: NounPhrase) -> NounPhrase:
    """Attaches nothing."""
    return phrase


@functools.cache
def verbs(frame: str, subjects: str, objects: str = "") -> tuple[Verb, ...]:
    """Returns the verbs of a frame for nouns with any of these tags."""
    return tuple(
        verb
        for verb in VERBS
        if verb.frame == frame
        and set(verb.subjects) & set(subjects)
        and (not objects or set(verb.objects) & set(objects))
    )


@functools.cache
def _tenses(verb: Verb, family: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the tenses of `family` in which the verb is used."""

    def used(tense: str) -> bool:
        if verb.frame == "copula":
            return tense in ("present", "past", "will")
        if verb.perfect_only and tense == "past":
            return False
        if verb.plain:
            return tense in _SIMPLE
        return not (verb.stative and tense == "progressive")

    return tuple(filter(used, family))


def draw_verb(draw: Draw, subjects: str) -> Verb:
    """Draws a verb that subjects with these tags can have."""
    frame = draw.pick(_FRAME_SHARES)
    return draw.pick(verbs(frame, subjects) or verbs("intransitive", subjects))


def start(draw: Draw, verb: Verb, tenses: tuple[str, ...]) -> Clause:
    """Returns a clause with verb, tense and polarity, still without phrases."""
    clause = Clause(verb, draw.pick(_tenses(verb, tenses)))
    clause.negated = clause.nicht = draw.chance(0.1)
    return clause


def set_subject(clause: Clause, phrase: NounPhrase) -> None:
    """Makes `phrase` (nominative) the subject."""
    clause.subject, clause.subject_de = f" {phrase.tree}", f" {phrase.whole}"
    clause.agreement = phrase.agreement


def _modified(attach: Attach) -> float:
    return 0.0 if attach is bare else 0.1


def draw_subject(
    draw: Draw, clause: Clause, tags: str, attach: Attach = bare
) -> NounPhrase:
    """Draws a pronoun or a noun phrase as subject.

    Args:
        draw: the source of choices.
        clause: the clause that gets it.
        tags: of the noun.
        attach: adds a relative clause.
    """
    if set(tags) & set(phrases.PEOPLE) and draw.chance(0.28):
        phrase = phrases.pronoun(draw, NOMINATIVE)
    else:
        determiners = phrases.DEFINITE if clause.negated else phrases.SUBJECT
        modified = _modified(attach)
        phrase = phrases.noun_phrase(draw, tags, NOMINATIVE, determiners, modified)
        phrase = attach(phrase)
    set_subject(clause, phrase)
    return phrase


def add_object(clause: Clause, phrase: NounPhrase) -> None:
    """Adds an accusative or dative object; its relative clause goes to the end."""
    clause.objects += f" {phrase.tree}"
    words = f" {phrase.german}"
    if phrase.pronoun:
        clause.pronouns_de += words
    elif phrase.definite:
        clause.definite_de += words
    else:
        clause.indefinite_de += words
    clause.after_de += phrase.relative
    clause.closed = clause.closed or bool(phrase.relative)
    if phrase.negative:
        clause.nicht = False


def draw_object(
    draw: Draw, clause: Clause, tags: str, case: int, attach: Attach
) -> NounPhrase:
    """Draws an object; kein instead of nicht where the clause is negated."""
    if set(tags) & set(phrases.PEOPLE) and draw.chance(0.25):
        return phrases.pronoun(draw, case, clause.agreement)
    determiners = phrases.NEGATED if clause.negated else phrases.OBJECT
    phrase = phrases.noun_phrase(draw, tags, case, determiners, _modified(attach))
    return attach(phrase)


def add_complements(draw: Draw, clause: Clause, attach: Attach) -> None:
    """Adds what the frame of the verb calls for, particles included."""
    verb = clause.verb
    particle = verb.english.particle
    if verb.frame in ("accusative", "dative"):
        case = DATIVE if verb.frame == "dative" else ACCUSATIVE
        phrase = draw_object(draw, clause, verb.objects, case, attach)
        add_verb_object(clause, phrase)
        return
    clause.objects += particle
    if verb.frame == "ditransitive":
        _add_two_objects(draw, clause, attach)
    elif verb.frame == "prepositional":
        case = ACCUSATIVE if verb.german_case == "a" else DATIVE
        phrase = _oblique(draw, clause, verb.objects, case, attach)
        _add_prepositional(clause, verb.preposition, verb.german_preposition, phrase)
    elif verb.frame == "motion":
        word, german_word, case, tags = draw.pick(adverbials.DIRECTIONS)
        determiners = phrases.DEFINITE if clause.negated else phrases.PLAIN
        phrase = phrases.noun_phrase(draw, tags, case, determiners)
        phrase = attach(phrase)
        _add_prepositional(clause, word, german_word, phrase)


def add_verb_object(clause: Clause, phrase: NounPhrase) -> None:
    """Adds the only object of a verb; a particle follows a pronoun object."""
    particle = clause.verb.english.particle
    clause.objects += "" if phrase.pronoun else particle
    if clause.verb.preposition:
        tag = "TO" if clause.verb.preposition == "to" else "IN"
        tree = f"(PP ({tag} {clause.verb.preposition}) {phrase.tree})"
        add_object(clause, phrase._replace(tree=tree))
    else:
        add_object(clause, phrase)
    clause.objects += particle if phrase.pronoun else ""


def _add_two_objects(draw: Draw, clause: Clause, attach: Attach) -> None:
    if draw.chance(0.35):
        recipient = phrases.pronoun(draw, DATIVE, clause.agreement)
    else:
        recipient = phrases.noun_phrase(draw, phrases.PEOPLE, DATIVE, phrases.DEFINITE)
    add_object(clause, recipient)
    # A bare plural here would run into the recipient: "her books" has two readings.
    determiners = phrases.PLAIN
    if clause.negated:
        determiners = phrases.NEGATED_SINGULAR
    theme = phrases.noun_phrase(draw, clause.verb.objects, ACCUSATIVE, determiners)
    add_object(clause, attach(theme))


def _oblique(
    draw: Draw, clause: Clause, tags: str, case: int, attach: Attach
) -> NounPhrase:
    """Draws the noun phrase of a prepositional object; negation stays nicht."""
    if set(tags) & set(phrases.PEOPLE) and draw.chance(0.2):
        return phrases.pronoun(draw, case, clause.agreement)
    determiners = phrases.DEFINITE if clause.negated else phrases.OBJECT
    phrase = phrases.noun_phrase(draw, tags, case, determiners, _modified(attach))
    return attach(phrase)


def _add_prepositional(
    clause: Clause, word: str, german_word: str, phrase: NounPhrase
) -> None:
    tree, words = adverbials.prepositional(word, german_word, phrase)
    clause.objects += f" {tree}"
    clause.predicate_de += f" {words}"
    clause.after_de += phrase.relative
    clause.closed = clause.closed or bool(phrase.relative)


def add_adverbials(
    draw: Draw, clause: Clause, scale: float = 1.0, *, nouns: bool = True
) -> None:
    """Adds adverbials, each sometimes, where nothing forbids them.

    Args:
        draw: the source of choices.
        clause: the clause, complete up to its complements.
        scale: multiplies the share of each adverbial.
        nouns: whether places and companions may come in.
    """
    _add_frequency(draw, clause, 0.1 * scale)
    if clause.closed:
        return
    active = not clause.tense.startswith("passive")
    if active and not clause.verb.stative and draw.chance(0.2 * scale):
        _add_manner(draw, clause, nouns)
    if nouns and clause.verb.frame not in _PLACELESS and draw.chance(0.2 * scale):
        _add_place(draw, clause)
    momentary = not clause.verb.plain or clause.verb.frame == "copula"
    if momentary and not clause.adverb and draw.chance(0.3 * scale):
        tree, words = adverbials.time(draw, clause.tense)
        clause.time, clause.time_de = f" {tree}", f" {words}"


def _add_frequency(draw: Draw, clause: Clause, share: float) -> None:
    # "never" beside another negation would make the sentence odd.
    negative = clause.negated or "(DT no)" in clause.subject
    usual = clause.tense in _SIMPLE and clause.verb.frame != "price"
    if usual and not negative and draw.chance(share):
        tree, words = draw.pick(adverbials.FREQUENCY)
        clause.adverb, clause.adverb_de = f" {tree}", f" {words}"


def _add_manner(draw: Draw, clause: Clause, nouns: bool) -> None:
    alone = clause.verb.frame in ("prepositional", "motion") or not nouns
    if alone or set(clause.verb.subjects) - set(phrases.PEOPLE) or draw.chance(0.5):
        tree, words = draw.pick(adverbials.MANNER)
    else:
        bound = 3 if clause.verb.english.base in _BENEFICIAL else 2
        word, german_word, case, tags = adverbials.COMPANIONS[draw.below(bound)]
        phrase = phrases.noun_phrase(draw, tags, case, phrases.PLAIN)
        tree, words = adverbials.prepositional(word, german_word, phrase)
    clause.manner, clause.manner_de = f" {tree}", f" {words}"


def _add_place(draw: Draw, clause: Clause) -> None:
    word, german_word, case, tags = draw.pick(adverbials.PLACES)
    phrase = phrases.noun_phrase(draw, tags, case, phrases.PLAIN)
    tree, words = adverbials.prepositional(word, german_word, phrase)
    clause.place, clause.place_de = f" {tree}", f" {words}"
