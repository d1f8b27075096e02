"""The nouns, adjectives and verbs of the grammar, in both languages.

The words are in `data/words.txt`. Each English form has one reading and one German
counterpart, so that the translation is a function; words with two readings are left
out. If only the simple past of a verb has two readings ("read"), the verb has no simple
past here.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, replace

from t2t_repro.features.synthetic.english import EnglishVerb, verb_forms, with_s
from t2t_repro.features.synthetic.german import (
    HABEN,
    SEIN,
    Case,
    Gender,
    GermanVerb,
    Noun,
    participle,
    past_forms,
    present_forms,
)
from t2t_repro.features.synthetic.word_traits import (
    NO_TRAITS,
    PEOPLE,
    Trait,
    parse_traits,
    word_pairs,
    word_table,
)

MODIFIERS, MATERIALS = word_pairs("modifiers"), word_pairs("materials")


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in both languages.

    Attributes:
        english: The English positive.
        german: The German positive, uninflected.
        stem: The German stem, which takes the endings.
        english_comparative: The English comparative, or "".
        german_comparative: The German comparative, or "".
        traits: Nouns with any of these traits can have it.
    """

    english: str
    german: str
    stem: str
    english_comparative: str
    german_comparative: str
    traits: Trait


_GENDERS = {"m": Gender.MASCULINE, "f": Gender.FEMININE, "n": Gender.NEUTER}


def _noun(row: list[str]) -> Noun:
    words, german, gender, german_plural, genitive, traits = row
    english, _, plural = words.partition("/")
    return Noun(
        english=english,
        english_plural=plural or with_s(english),
        german=german,
        gender=_GENDERS[gender.removesuffix("*")],
        plural=german_plural,
        genitive=german + genitive.strip("-"),
        weak=gender.endswith("*"),
        traits=parse_traits(traits),
    )


def _adjective(row: list[str]) -> Adjective:
    english, german, comparative, german_comparative, traits = row
    word, _, stem = german.partition("/")
    return Adjective(
        english=english,
        german=word,
        stem=stem or word,
        english_comparative=comparative.strip("-").replace("-", " "),
        german_comparative=german_comparative.strip("-"),
        traits=parse_traits(traits),
    )


NOUNS = tuple(_noun(row) for row in word_table("nouns"))
ADJECTIVES = tuple(_adjective(row) for row in word_table("adjectives"))


@functools.cache
def nouns(traits: Trait) -> tuple[Noun, ...]:
    """Return the nouns that have any of the traits."""
    return tuple(noun for noun in NOUNS if noun.traits & traits)


@functools.cache
def adjectives(traits: Trait) -> tuple[Adjective, ...]:
    """Return the adjectives for nouns that have any of the traits."""
    return tuple(a for a in ADJECTIVES if a.traits & traits)


@functools.cache
def comparable_adjectives(traits: Trait) -> tuple[Adjective, ...]:
    """Return the adjectives with a comparative for nouns with any of the traits."""
    return tuple(a for a in adjectives(traits) if a.english_comparative)


class Frame(enum.Enum):
    """The complements that a verb needs."""

    INTRANSITIVE = enum.auto()
    ACCUSATIVE = enum.auto()
    DATIVE = enum.auto()
    DITRANSITIVE = enum.auto()
    PREPOSITIONAL = enum.auto()
    MOTION = enum.auto()  # a direction
    THAT = enum.auto()  # a clause with "that"
    WHETHER = enum.auto()  # a clause with "whether"
    CONTROL = enum.auto()  # an infinitive
    COPULA = enum.auto()
    PRICE = enum.auto()


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in both languages.

    Attributes:
        english: Its English forms.
        german: Its German forms.
        frame: Its complements.
        subjects: Nouns with any of these traits can be its subject.
        objects: Nouns with any of these traits can be its object.
        preposition: English preposition of the complement, or "".
        german_preposition: German preposition of a prepositional frame, or "".
        german_case: The case that `german_preposition` governs.
        stative: Whether it has no progressive forms and no adverbs of manner.
        only_simple: Whether it is used in the simple tenses only.
        no_past: Whether its simple past equals another English form.
    """

    english: EnglishVerb
    german: GermanVerb
    frame: Frame
    subjects: Trait
    objects: Trait = NO_TRAITS
    preposition: str = ""
    german_preposition: str = ""
    german_case: Case = Case.ACCUSATIVE
    stative: bool = False
    only_simple: bool = False
    no_past: bool = False


_PARTICLES = {
    "up": " (PRT (RP up))",
    "on": " (PRT (RP on))",
    "away": " (PRT (RP away))",
    "back": " (ADVP (RB back))",
    "along": " (ADVP (RB along))",
    "asleep": " (ADJP (JJ asleep))",
}
# The case that a preposition of these verbs governs.
_GOVERNED_CASES = {"auf": Case.ACCUSATIVE, "über": Case.ACCUSATIVE, "von": Case.DATIVE}


def _english_verb(text: str) -> tuple[EnglishVerb, str]:
    """Parse the English column: the forms, and the preposition or ""."""
    text, _, preposition = text.partition(">")
    text, _, particle = text.partition("+")
    base, past, third_form = (text + "//").split("/")[:3]
    forms = verb_forms(base, past, third_form)
    if base in ("read", "put"):
        forms = replace(forms, participle=base)
    return replace(forms, particle=_PARTICLES.get(particle, "")), preposition


def _german_verb(
    text: str, past_participle: str, auxiliary: tuple[str, ...]
) -> GermanVerb:
    prefix, _, rest = text.rpartition("+")
    infinitive, _, changed = rest.partition("/")
    if past_participle == "-":
        past_participle = participle(prefix, infinitive)
    present, preterite = present_forms(infinitive, changed), None
    if infinitive == "wissen":
        present = ("weiß", "weißt", "weiß", "wissen", "wissen")
        preterite = past_forms("wusste")
    if infinitive == "haben":
        present, preterite = HABEN, past_forms("hatte")
    return GermanVerb(
        prefix, infinitive, present, past_participle, auxiliary, preterite
    )


def _verb(frame: Frame, row: list[str]) -> Verb:
    english_column, german_column, past_participle, flag_column, subjects = row[:5]
    objects = row[5] if len(row) > 5 else ""
    english, preposition = _english_verb(english_column)
    auxiliary, *flags = flag_column.split(",")
    german_preposition, _, objects = objects.rpartition(":")
    return Verb(
        english=english,
        german=_german_verb(
            german_column, past_participle, SEIN if auxiliary == "sein" else HABEN
        ),
        frame=frame,
        subjects=parse_traits(subjects),
        objects=parse_traits(objects),
        preposition=preposition,
        german_preposition=german_preposition,
        german_case=_GOVERNED_CASES.get(german_preposition, Case.ACCUSATIVE),
        stative="stative" in flags,
        only_simple="simple" in flags,
        no_past="no_past" in flags,
    )


VERBS = tuple(
    _verb(frame, row)
    for frame in Frame
    for row in word_table(f"verbs: {frame.name.lower()}")
)
BE = Verb(
    english=EnglishVerb("be", "is", "was", "been", "being"),
    german=GermanVerb("", "sein", SEIN, "gewesen", SEIN, past_forms("war")),
    frame=Frame.COPULA,
    subjects=PEOPLE | Trait.ANIMAL | Trait.THING | Trait.FOOD | Trait.PLACE,
    stative=True,
    only_simple=True,
)


@functools.cache
def find_verbs(
    frame: Frame, subjects: Trait, objects: Trait = NO_TRAITS
) -> tuple[Verb, ...]:
    """Return the verbs of a frame for nouns with any of these traits.

    Args:
        frame: The complements.
        subjects: Traits of the subject.
        objects: Traits of the object; without traits, every verb qualifies.
    """
    return tuple(
        verb
        for verb in VERBS
        if verb.frame is frame
        and verb.subjects & subjects
        and (not objects or verb.objects & objects)
    )


(COST,) = find_verbs(Frame.PRICE, Trait.THING)
