"""Adverbials of time, frequency, manner, place and direction."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.features.synthetic import english
from t2t_repro.features.synthetic.draw import Draw
from t2t_repro.features.synthetic.german import Case, cardinal, contract
from t2t_repro.features.synthetic.phrases import NounPhrase
from t2t_repro.features.synthetic.tenses import PERFECTS, Tense
from t2t_repro.features.synthetic.traits import PEOPLE, Trait
from t2t_repro.features.synthetic.words import Pair, word_pairs


def _adverbs(text: str) -> tuple[Pair, ...]:
    return tuple(
        Pair(f"(ADVP (RB {word.english}))", word.german) for word in word_pairs(text)
    )


FREQUENCY = _adverbs(
    "often:oft always:immer sometimes:manchmal never:nie seldom:selten usually:meistens"
)
MANNER = _adverbs(
    "quickly:schnell slowly:langsam quietly:leise carefully:vorsichtig "
    "secretly:heimlich alone:allein"
)
_TODAY = Pair("(NP (NN today))", "heute")
_PAST = (
    Pair("(NP (NN yesterday))", "gestern"),
    Pair("(NP (JJ last) (NN week))", "letzte Woche"),
    Pair("(NP (JJ last) (NN year))", "letztes Jahr"),
)
_PRESENT = (_TODAY, Pair("(ADVP (RB now))", "jetzt"))
_FUTURE = (
    _TODAY,
    Pair("(NP (NN tomorrow))", "morgen"),
    Pair("(NP (JJ next) (NN week))", "nächste Woche"),
    Pair("(NP (JJ next) (NN year))", "nächstes Jahr"),
)
PARTS_OF_DAY = word_pairs("morning:Morgen evening:Abend afternoon:Nachmittag")
DAYS = word_pairs(
    "Monday:Montag Tuesday:Dienstag Wednesday:Mittwoch Thursday:Donnerstag "
    "Friday:Freitag Saturday:Samstag Sunday:Sonntag"
)
MONTHS = word_pairs(
    "January:Januar February:Februar March:März April:April May:Mai June:Juni "
    "July:Juli August:August September:September October:Oktober "
    "November:November December:Dezember"
)
_PAST_TENSES = frozenset(
    {Tense.PAST, Tense.COULD, Tense.HAD_TO, Tense.WANTED, Tense.PASSIVE}
)
_PRESENT_TENSES = frozenset({Tense.PRESENT, Tense.PROGRESSIVE})


def _clock(draw: Draw) -> Pair:
    hour = 1 + draw.below(12)
    if draw.chance(0.5):
        tree = f"(PP (IN at) (NP (CD {english.cardinal(hour)}) (RB o'clock)))"
        spelled = "ein" if hour == 1 else cardinal(hour)
        return Pair(tree, f"um {spelled} Uhr")
    minute = 5 + draw.below(55)
    tree = f"(PP (IN at) (NP (CD {hour}:{minute:02})))"
    return Pair(tree, f"um {hour}.{minute:02} Uhr")


def _calendar(draw: Draw) -> Pair:
    kind = draw.below(4)
    if kind == 0:
        part = draw.pick(PARTS_OF_DAY)
        tree = f"(PP (IN in) (NP (DT the) (NN {part.english})))"
        return Pair(tree, f"am {part.german}")
    if kind == 1:
        month = draw.pick(MONTHS)
        if draw.chance(0.4):
            return Pair(
                f"(PP (IN in) (NP (NNP {month.english})))", f"im {month.german}"
            )
        number = 1 + draw.below(28)
        tree = f"(PP (IN on) (NP (NNP {month.english}) (CD {number})))"
        return Pair(tree, f"am {number}. {month.german}")
    day = draw.pick(DAYS)
    return Pair(f"(PP (IN on) (NP (NNP {day.english})))", f"am {day.german}")


def time(draw: Draw, tense: Tense) -> Pair:
    """Draw an adverbial of time that fits the tense."""
    if tense in PERFECTS:
        return _TODAY
    if draw.chance(0.4):
        return _clock(draw) if draw.chance(0.4) else _calendar(draw)
    if tense in _PAST_TENSES:
        if draw.chance(0.3):
            year = 1900 + draw.below(124)
            return Pair(f"(PP (IN in) (NP (CD {year})))", f"im Jahr {year}")
        return draw.pick(_PAST)
    return draw.pick(_PRESENT if tense in _PRESENT_TENSES else _FUTURE)


@dataclass(frozen=True, slots=True)
class Preposition:
    """A preposition in both languages.

    Attributes:
        english: The English words.
        german: The German word.
        case: The case that it governs.
        traits: Nouns with any of these traits can follow it.
    """

    english: str
    german: str
    case: Case
    traits: Trait


PLACES = (
    *(Preposition("in", "in", Case.DATIVE, Trait.ENTERABLE),) * 7,
    Preposition("on", "auf", Case.DATIVE, Trait.SURFACE),
    Preposition("behind", "hinter", Case.DATIVE, Trait.LANDMARK),
    Preposition("in front of", "vor", Case.DATIVE, Trait.LANDMARK),
    Preposition("near", "bei", Case.DATIVE, Trait.LANDMARK),
)
DIRECTIONS = (
    *(Preposition("into", "in", Case.ACCUSATIVE, Trait.ENTERABLE),) * 3,
    Preposition("onto", "auf", Case.ACCUSATIVE, Trait.SURFACE),
    *(Preposition("to", "zu", Case.DATIVE, Trait.LANDMARK | Trait.MAN | Trait.WOMAN),)
    * 3,
)
COMPANIONS = (
    Preposition("with", "mit", Case.DATIVE, PEOPLE),
    Preposition("without", "ohne", Case.ACCUSATIVE, PEOPLE | Trait.ACCESSORY),
)
BENEFICIARY = Preposition("for", "für", Case.ACCUSATIVE, PEOPLE)


def prepositional(word: str, german: str, phrase: NounPhrase) -> Pair:
    """Put a preposition before a noun phrase, in both languages.

    The German article does not merge with the preposition before a relative clause
    (in dem Haus, das ...). The caller adds the relative clause itself.
    """
    if word == "in front of":
        tree = f"(PP (IN in) (NP (NP (NN front)) (PP (IN of) {phrase.tree})))"
    else:
        tree = f"(PP {english.preposition_leaf(word)} {phrase.tree})"
    if phrase.relative:
        return Pair(tree, f"{german} {phrase.german}")
    return Pair(tree, contract(german, phrase.german))
