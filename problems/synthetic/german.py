"""German inflection for the synthetic grammar: declension, conjugation, numbers.

Tables are indexed `[case][column]`; the columns are the three genders and the
plural, which German inflects alike for all genders. Standard library only.
"""

from __future__ import annotations

from typing import NamedTuple

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)

# Subject agreement: ich, du, er/sie/es, wir, sie (plural).
FIRST, SECOND, THIRD, FIRST_PLURAL, THIRD_PLURAL = range(5)

_Table = tuple[tuple[str, str, str, str], ...]

_DEFINITE: _Table = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
_STRONG_DETERMINER: _Table = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
_EIN_DETERMINER: _Table = (
    ("", "e", "", "e"),
    ("en", "e", "", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
_EN4 = ("en", "en", "en", "en")
WEAK: _Table = (("e", "e", "e", "en"), ("en", "e", "e", "en"), _EN4, _EN4)
MIXED: _Table = (("er", "e", "es", "en"), ("en", "e", "es", "en"), _EN4, _EN4)
STRONG: _Table = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("en", "er", "en", "er"),
)
RELATIVE: _Table = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "denen"),
    ("dessen", "deren", "dessen", "deren"),
)
THIRD_PERSON: _Table = (
    ("er", "sie", "es", "sie"),
    ("ihn", "sie", "es", "sie"),
    ("ihm", "ihr", "ihm", "ihnen"),
)
_EIN_WORDS = frozenset({"ein", "kein", "mein", "dein", "sein", "ihr", "unser"})
_WEAKENING = frozenset({"der", "dies", "jed", "welch", "all", "beid"})

# A preposition melts into a following bare definite article.
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("an", "dem"): "am",
    ("bei", "dem"): "beim",
}


class Noun(NamedTuple):
    """A noun with the forms from which all others follow, on both sides."""

    english: str
    english_plural: str
    german: str
    gender: int
    plural: str
    genitive: str
    weak: bool
    tags: str


class GermanVerb(NamedTuple):
    """A verb's principal parts; `present` holds the five agreement forms."""

    prefix: str
    infinitive: str
    present: tuple[str, ...]
    participle: str
    auxiliary: tuple[str, ...]
    preterite: tuple[str, ...] | None = None


def determiner(lemma: str, case: int, column: int) -> str:
    """Returns `lemma` (der, ein, dies, mein, viel, ...) inflected."""
    if lemma == "der":
        return _DEFINITE[case][column]
    endings = _EIN_DETERMINER if lemma in _EIN_WORDS else _STRONG_DETERMINER
    return lemma + endings[case][column]


def declension_after(lemma: str) -> _Table:
    """Returns the adjective endings that a determiner calls for."""
    if lemma in _WEAKENING:
        return WEAK
    return MIXED if lemma in _EIN_WORDS else STRONG


def noun_form(noun: Noun, case: int, plural: bool) -> str:
    """Returns the German noun in one case and number."""
    if plural:
        needs_n = case == DATIVE and noun.plural[-1] not in "ns"
        return noun.plural + "n" if needs_n else noun.plural
    if noun.weak:
        return noun.german if case == NOMINATIVE else noun.plural
    return noun.genitive if case == GENITIVE else noun.german


def compound(modifier: tuple[str, str], head: Noun) -> Noun:
    """Joins an (English, German linking form) modifier and a head noun.

    Gender and inflection are those of the head: ("garden", "Garten") and Tür
    give die Gartentür.
    """
    english, german = modifier
    return head._replace(
        english=f"{english} {head.english}",
        english_plural=f"{english} {head.english_plural}",
        german=german + head.german.lower(),
        plural=german + head.plural.lower(),
        genitive=german + head.genitive.lower(),
    )


def contract(preposition: str, phrase: str) -> str:
    """Puts `preposition` before `phrase`, melting it with a definite article."""
    article, _, rest = phrase.partition(" ")
    melted = _CONTRACTIONS.get((preposition, article))
    return f"{melted} {rest}" if melted else f"{preposition} {phrase}"


def present_forms(infinitive: str, changed_stem: str = "") -> tuple[str, ...]:
    """Conjugates the present tense.

    Args:
        infinitive: without a separable prefix.
        changed_stem: stem of du and er where the vowel changes (schläf, gib).
    """
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    third = changed_stem or stem
    link = "" if changed_stem or stem[-1] not in "dt" else "e"
    second = third + ("t" if third[-1] in "sßxz" else f"{link}st")
    return (stem + "e", second, f"{third}{link}t", infinitive, infinitive)


def past_forms(stem: str) -> tuple[str, ...]:
    """Conjugates a preterite whose first person is `stem` (konnte, war, hatte)."""
    plural = stem + ("n" if stem.endswith("e") else "en")
    return (stem, stem + "st", stem, plural, plural)


HABEN = ("habe", "hast", "hat", "haben", "haben")
SEIN = ("bin", "bist", "ist", "sind", "sind")
WERDEN = ("werde", "wirst", "wird", "werden", "werden")
MODALS = {
    "can": ("kann", "kannst", "kann", "können", "können"),
    "must": ("muss", "musst", "muss", "müssen", "müssen"),
    "must not": ("darf", "darfst", "darf", "dürfen", "dürfen"),
    "want": ("will", "willst", "will", "wollen", "wollen"),
    "will": WERDEN,
    "should": past_forms("sollte"),
    "could": past_forms("konnte"),
    "had to": past_forms("musste"),
    "wanted": past_forms("wollte"),
}
_WURDE = past_forms("wurde")


def participle(prefix: str, infinitive: str) -> str:
    """Forms the participle of a regular verb, -ge- between prefix and stem."""
    stem = infinitive[:-2]
    inseparable = stem.startswith(("be", "ver", "er")) or stem.endswith("ier")
    ending = "et" if stem[-1] in "dt" else "t"
    return prefix + ("" if inseparable else "ge") + stem + ending


def zu_infinitive(verb: GermanVerb) -> str:
    """Returns "zu kaufen" or, with a separable prefix, "aufzumachen"."""
    if verb.prefix:
        return f"{verb.prefix}zu{verb.infinitive}"
    return f"zu {verb.infinitive}"


def verb_brackets(verb: GermanVerb, tense: str, agreement: int) -> tuple[str, str, str]:
    """Returns the verb of a clause for all word orders.

    Args:
        verb: its principal parts.
        tense: a key of MODALS, "present", "progressive", "past", "perfect",
            "passive", "passive perfect" or "passive must".
        agreement: FIRST to THIRD_PLURAL.

    Returns:
        The finite verb, the right bracket of a main clause (may be empty), and
        the whole verb at the end of a subordinate clause.
    """
    if tense in ("present", "progressive"):
        finite = verb.present[agreement]
        return finite, verb.prefix, verb.prefix + finite
    if tense == "past" and verb.preterite:
        finite = verb.preterite[agreement]
        return finite, verb.prefix, verb.prefix + finite
    if tense in ("past", "perfect"):
        finite, right = verb.auxiliary[agreement], verb.participle
    elif tense == "passive":
        finite, right = _WURDE[agreement], verb.participle
    elif tense == "passive perfect":
        finite, right = SEIN[agreement], verb.participle + " worden"
    elif tense == "passive must":
        finite, right = MODALS["must"][agreement], verb.participle + " werden"
    else:
        finite, right = MODALS[tense][agreement], verb.prefix + verb.infinitive
    return finite, right, f"{right} {finite}"


_NUMERALS = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
)
_ROUND_NUMERALS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_UNITS = _NUMERALS.split()
_TENS = _ROUND_NUMERALS.split()


def cardinal(number: int) -> str:
    """Spells a number from 0 to 999: 21 is einundzwanzig."""
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
