"""German inflection: declension, conjugation, numbers.

The tables of `data/words.txt` are indexed `[case][gender]`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from t2t_repro.features.synthetic.tenses import Tense
from t2t_repro.features.synthetic.word_traits import Pair, Trait, word_pairs, word_table


class Case(enum.IntEnum):
    """A grammatical case."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2
    GENITIVE = 3


class Gender(enum.IntEnum):
    """A gender, or the plural, whose inflection is the same for all genders."""

    MASCULINE = 0
    FEMININE = 1
    NEUTER = 2
    PLURAL = 3


class Agreement(enum.IntEnum):
    """Person and number of a subject: ich, du, er/sie/es, wir, sie."""

    FIRST = 0
    SECOND = 1
    THIRD = 2
    FIRST_PLURAL = 3
    THIRD_PLURAL = 4


_Table = tuple[tuple[str, ...], ...]


def _table(section: str) -> _Table:
    return tuple(tuple(form.strip("-") for form in row) for row in word_table(section))


_DEFINITE = _table("definite article")
_DETERMINER = _table("determiner")
_EIN_DETERMINER = _table("determiner like ein")
WEAK = _table("adjective after der")
MIXED = _table("adjective after ein")
STRONG = _table("adjective alone")
RELATIVE = _table("relative pronoun")
THIRD_PERSON = _table("third person")
_EIN_WORDS = frozenset({"ein", "kein", "mein", "dein", "sein", "ihr", "unser"})
_WEAKENING = frozenset({"der", "dies", "jed", "welch", "all", "beid"})

# A preposition merges with the definite article that follows it.
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("an", "dem"): "am",
    ("bei", "dem"): "beim",
}


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in both languages, with the forms that determine all others.

    Attributes:
        english: The English singular.
        english_plural: The English plural.
        german: The German nominative singular.
        gender: The gender of the German noun.
        plural: The German nominative plural.
        genitive: The German genitive singular.
        weak: Whether all other German singular forms equal the plural.
        traits: Traits that decide what may be said about it.
    """

    english: str
    english_plural: str
    german: str
    gender: Gender
    plural: str
    genitive: str
    weak: bool
    traits: Trait


@dataclass(frozen=True, slots=True)
class GermanVerb:
    """The principal parts of a verb.

    Attributes:
        prefix: The separable prefix, or "".
        infinitive: The infinitive without the prefix.
        present: The five forms of the present tense, indexed by `Agreement`.
        participle: The past participle, with the prefix.
        auxiliary: The present tense of haben or sein.
        preterite: The five forms of the preterite, or None if the perfect is used.
    """

    prefix: str
    infinitive: str
    present: tuple[str, ...]
    participle: str
    auxiliary: tuple[str, ...]
    preterite: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class VerbBrackets:
    """The verb of a clause for all word orders.

    Attributes:
        finite: The finite verb, first or second in its clause.
        right: The right bracket of such a clause; may be empty.
        last: The whole verb at the end of a subordinate clause.
    """

    finite: str
    right: str
    last: str


def determiner(lemma: str, case: Case, gender: Gender) -> str:
    """Inflect a determiner: der, ein, dies, mein, viel, ..."""
    if lemma == "der":
        return _DEFINITE[case][gender]
    endings = _EIN_DETERMINER if lemma in _EIN_WORDS else _DETERMINER
    return lemma + endings[case][gender]


def declension_after(lemma: str) -> _Table:
    """Return the adjective endings that follow a determiner."""
    if lemma in _WEAKENING:
        return WEAK
    return MIXED if lemma in _EIN_WORDS else STRONG


def noun_form(noun: Noun, case: Case, plural: bool) -> str:
    """Inflect a noun."""
    if plural:
        needs_n = case == Case.DATIVE and noun.plural[-1] not in "ns"
        return noun.plural + "n" if needs_n else noun.plural
    if noun.weak:
        return noun.german if case == Case.NOMINATIVE else noun.plural
    return noun.genitive if case == Case.GENITIVE else noun.german


def compound(modifier: Pair, head: Noun) -> Noun:
    """Join a modifier, in its German linking form, and a head noun.

    Gender and inflection are those of the head: ("garden", "Garten") and Tür make die
    Gartentür.
    """
    return replace(
        head,
        english=f"{modifier.english} {head.english}",
        english_plural=f"{modifier.english} {head.english_plural}",
        german=modifier.german + head.german.lower(),
        plural=modifier.german + head.plural.lower(),
        genitive=modifier.german + head.genitive.lower(),
    )


def contract(preposition: str, phrase: str) -> str:
    """Put a preposition before a phrase; it merges with a definite article."""
    article, _, rest = phrase.partition(" ")
    merged = _CONTRACTIONS.get((preposition, article))
    return f"{merged} {rest}" if merged else f"{preposition} {phrase}"


def present_forms(infinitive: str, changed_stem: str = "") -> tuple[str, ...]:
    """Conjugate the present tense.

    Args:
        infinitive: The infinitive without a separable prefix.
        changed_stem: The stem of du and er if the vowel changes (schläf, gib).
    """
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    third = changed_stem or stem
    link = "" if changed_stem or stem[-1] not in "dt" else "e"
    second = third + ("t" if third[-1] in "sßxz" else f"{link}st")
    return (stem + "e", second, f"{third}{link}t", infinitive, infinitive)


def past_forms(stem: str) -> tuple[str, ...]:
    """Conjugate a preterite whose first person is `stem` (konnte, war, hatte)."""
    plural = stem + ("n" if stem.endswith("e") else "en")
    return (stem, stem + "st", stem, plural, plural)


HABEN = ("habe", "hast", "hat", "haben", "haben")
SEIN = ("bin", "bist", "ist", "sind", "sind")
MODALS = {
    Tense(english.replace("-", " ")): tuple(forms)
    for english, *forms in word_table("modals")
}
_WURDE = past_forms("wurde")


def participle(prefix: str, infinitive: str) -> str:
    """Form the participle of a regular verb: -ge- between prefix and stem."""
    stem = infinitive[:-2]
    inseparable = stem.startswith(("be", "ver", "er")) or stem.endswith("ier")
    ending = "et" if stem[-1] in "dt" else "t"
    return prefix + ("" if inseparable else "ge") + stem + ending


def zu_infinitive(verb: GermanVerb) -> str:
    """Return "zu kaufen" or, with a separable prefix, "aufzumachen"."""
    if verb.prefix:
        return f"{verb.prefix}zu{verb.infinitive}"
    return f"zu {verb.infinitive}"


def verb_brackets(verb: GermanVerb, tense: Tense, agreement: Agreement) -> VerbBrackets:
    """Conjugate the verb of a clause."""
    if tense in (Tense.PRESENT, Tense.PROGRESSIVE):
        return _simple_brackets(verb, verb.present[agreement])
    if tense is Tense.PAST and verb.preterite:
        return _simple_brackets(verb, verb.preterite[agreement])
    if tense in (Tense.PAST, Tense.PERFECT):
        finite, right = verb.auxiliary[agreement], verb.participle
    elif tense is Tense.PASSIVE:
        finite, right = _WURDE[agreement], verb.participle
    elif tense is Tense.PASSIVE_PERFECT:
        finite, right = SEIN[agreement], verb.participle + " worden"
    elif tense is Tense.PASSIVE_MUST:
        finite, right = MODALS[Tense.MUST][agreement], verb.participle + " werden"
    else:
        finite, right = MODALS[tense][agreement], verb.prefix + verb.infinitive
    return VerbBrackets(finite, right, f"{right} {finite}")


def _simple_brackets(verb: GermanVerb, finite: str) -> VerbBrackets:
    return VerbBrackets(finite, verb.prefix, verb.prefix + finite)


_UNITS = [pair.german for pair in word_pairs("numerals from zero")]
_TENS = [pair.german for pair in word_pairs("tens from twenty")]


def cardinal(number: int) -> str:
    """Spell a number from 0 to 999: 21 is einundzwanzig."""
    if number >= 100:
        rest = cardinal(number % 100) if number % 100 else ""
        return _before_noun(number // 100) + "hundert" + rest
    if number < 20:
        return _UNITS[number]
    ten = _TENS[number // 10 - 2]
    unit = number % 10
    return f"{_before_noun(unit)}und{ten}" if unit else ten


def _before_noun(unit: int) -> str:
    return "ein" if unit == 1 else _UNITS[unit]
