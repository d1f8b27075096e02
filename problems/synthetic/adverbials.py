"""Adverbials of the synthetic grammar: time, frequency, manner, place, direction."""

from __future__ import annotations

from collections.abc import Sequence

from . import english
from .german import ACCUSATIVE, DATIVE, cardinal, contract
from .lexicon import word_pairs
from .phrases import Draw, NounPhrase

# An adverbial: its English tree and its German words.
Adverbial = tuple[str, str]


def _adverbs(text: str) -> tuple[Adverbial, ...]:
    return tuple((f"(ADVP (RB {word}))", german) for word, german in word_pairs(text))


FREQUENCY = _adverbs(
    "often:oft always:immer sometimes:manchmal never:nie seldom:selten usually:meistens"
)
MANNER = _adverbs(
    "quickly:schnell slowly:langsam quietly:leise carefully:vorsichtig "
    "secretly:heimlich alone:allein"
)
_TODAY = ("(NP (NN today))", "heute")
_PAST = (
    ("(NP (NN yesterday))", "gestern"),
    ("(NP (JJ last) (NN week))", "letzte Woche"),
    ("(NP (JJ last) (NN year))", "letztes Jahr"),
)
_PRESENT = (_TODAY, ("(ADVP (RB now))", "jetzt"))
_FUTURE = (
    _TODAY,
    ("(NP (NN tomorrow))", "morgen"),
    ("(NP (JJ next) (NN week))", "nächste Woche"),
    ("(NP (JJ next) (NN year))", "nächstes Jahr"),
)
_PARTS_OF_DAY = (
    ("morning", "Morgen"),
    ("evening", "Abend"),
    ("afternoon", "Nachmittag"),
)
_DAYS = word_pairs(
    "Monday:Montag Tuesday:Dienstag Wednesday:Mittwoch Thursday:Donnerstag "
    "Friday:Freitag Saturday:Samstag Sunday:Sonntag"
)
_MONTHS = word_pairs(
    "January:Januar February:Februar March:März April:April May:Mai June:Juni "
    "July:Juli August:August September:September October:Oktober "
    "November:November December:Dezember"
)
_PAST_TENSES = frozenset({"past", "could", "had to", "wanted", "passive"})
_PRESENT_TENSES = frozenset({"present", "progressive"})


def _clock(draw: Draw) -> Adverbial:
    hour = 1 + draw.below(12)
    if draw.chance(0.5):
        tree = f"(PP (IN at) (NP (CD {english.cardinal(hour)}) (RB o'clock)))"
        spelled = "ein" if hour == 1 else cardinal(hour)
        return tree, f"um {spelled} Uhr"
    minute = 5 + draw.below(55)
    return f"(PP (IN at) (NP (CD {hour}:{minute:02})))", f"um {hour}.{minute:02} Uhr"


def _calendar(draw: Draw) -> Adverbial:
    kind = draw.below(4)
    if kind == 0:
        word, german = draw.pick(_PARTS_OF_DAY)
        return f"(PP (IN in) (NP (DT the) (NN {word})))", f"am {german}"
    if kind == 1:
        word, german = draw.pick(_MONTHS)
        if draw.chance(0.4):
            return f"(PP (IN in) (NP (NNP {word})))", f"im {german}"
        day = 1 + draw.below(28)
        tree = f"(PP (IN on) (NP (NNP {word}) (CD {day})))"
        return tree, f"am {day}. {german}"
    word, german = draw.pick(_DAYS)
    return f"(PP (IN on) (NP (NNP {word})))", f"am {german}"


def time(draw: Draw, tense: str) -> Adverbial:
    """Draws an adverbial of time that goes with the tense."""
    if tense.endswith("perfect"):
        return _TODAY
    if draw.chance(0.4):
        return _clock(draw) if draw.chance(0.4) else _calendar(draw)
    if tense in _PAST_TENSES:
        if draw.chance(0.3):
            year = 1900 + draw.below(124)
            return f"(PP (IN in) (NP (CD {year})))", f"im Jahr {year}"
        return draw.pick(_PAST)
    return draw.pick(_PRESENT if tense in _PRESENT_TENSES else _FUTURE)


# English, German, case, tags of the nouns.
Preposition = tuple[str, str, int, str]
PLACES: Sequence[Preposition] = (
    *(("in", "in", DATIVE, "e"),) * 7,
    ("on", "auf", DATIVE, "u"),
    ("behind", "hinter", DATIVE, "n"),
    ("in front of", "vor", DATIVE, "n"),
    ("near", "bei", DATIVE, "n"),
)
DIRECTIONS: Sequence[Preposition] = (
    *(("into", "in", ACCUSATIVE, "e"),) * 3,
    ("onto", "auf", ACCUSATIVE, "u"),
    *(("to", "zu", DATIVE, "nhq"),) * 3,
)
COMPANIONS: Sequence[Preposition] = (
    ("with", "mit", DATIVE, "hqx"),
    ("without", "ohne", ACCUSATIVE, "hqxc"),
    ("for", "für", ACCUSATIVE, "hqx"),
)


def prepositional(word: str, german: str, phrase: NounPhrase) -> Adverbial:
    """Puts a preposition before a noun phrase, in both languages.

    The German article stays whole before a relative clause (in dem Haus, das ...),
    which is left to the caller.
    """
    if word == "in front of":
        tree = f"(PP (IN in) (NP (NP (NN front)) (PP (IN of) {phrase.tree})))"
    else:
        tag = "TO" if word == "to" else "IN"
        tree = f"(PP ({tag} {word}) {phrase.tree})"
    if phrase.relative:
        return tree, f"{german} {phrase.german}"
    return tree, contract(german, phrase.german)
