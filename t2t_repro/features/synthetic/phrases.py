"""Noun phrases and adverbials in both languages at once.

A phrase is drawn, not parsed: the same random choices write the English tree and
the German words. `relatives` adds relative clauses.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2t_repro.features.synthetic import english, lexicon
from t2t_repro.features.synthetic.german import (
    STRONG,
    Agreement,
    Case,
    Gender,
    Noun,
    cardinal,
    compound,
    contract,
    declension_after,
    determiner,
    noun_form,
)
from t2t_repro.features.synthetic.tenses import PERFECTS, Tense
from t2t_repro.features.synthetic.word_traits import (
    PEOPLE,
    Draw,
    Pair,
    Trait,
    parse_traits,
    word_pairs,
    word_table,
)


class Form(enum.Enum):
    """Spelling of a determiner."""

    FIXED = enum.auto()  # English as given, German inflected
    ARTICLE = enum.auto()  # "a" or "an"
    DIGITS = enum.auto()  # a number in digits
    SPELLED = enum.auto()  # a number in words


@dataclass(frozen=True, slots=True)
class Determiner:
    """A determiner in both languages, with its grammatical properties.

    Attributes:
        tree: The English leaf, or "".
        german: The German lemma, or "".
        plural: Whether the noun is in the plural.
        definite: Whether the noun phrase is definite.
        form: Its spelling.
    """

    tree: str
    german: str
    plural: bool = False
    definite: bool = True
    form: Form = Form.FIXED


_THE = Determiner(" (DT the)", "der")
_POSSESSIVES = tuple(
    Determiner(f" (PRP$ {word})", lemma, plural)
    for word, lemma in (
        ("my", "mein"),
        ("your", "dein"),
        ("his", "sein"),
        ("her", "ihr"),
        ("our", "unser"),
        ("their", "ihr"),
    )
    for plural in (False, True)
)
_THIS = Determiner(" (DT this)", "dies")
_THESE = Determiner(" (DT these)", "dies", plural=True)
_INDEFINITE = Determiner("", "ein", definite=False, form=Form.ARTICLE)
_BARE = Determiner("", "", plural=True, definite=False)
_SPELLED = Determiner("", "", plural=True, definite=False, form=Form.SPELLED)
_DIGITS = Determiner("", "", plural=True, definite=False, form=Form.DIGITS)
_NUMBERS = (*(_SPELLED,) * 4, _DIGITS)
_QUANTIFIERS = (
    Determiner(" (DT every)", "jed"),
    Determiner(" (DT all)", "all", plural=True),
    Determiner(" (DT both)", "beid", plural=True),
    Determiner(" (JJ many)", "viel", plural=True, definite=False),
    Determiner(" (DT some)", "einig", plural=True, definite=False),
)
_NO = Determiner(" (DT no)", "kein")
WHICH = Determiner(" (WDT which)", "welch")
DEMONSTRATIVE = (_THIS, _THESE)
SINGULAR = (_THE, _THE, _INDEFINITE)
_PLURAL_THE = replace(_THE, plural=True)
DEFINITE = (
    *(_THE,) * 18,
    *(_PLURAL_THE,) * 8,
    _THIS,
    _THIS,
    _THESE,
    _THESE,
    *_POSSESSIVES,
)
PLAIN = DEFINITE + (_INDEFINITE,) * 14
SUBJECT = PLAIN * 2 + _QUANTIFIERS * 2 + _NUMBERS * 2 + (_BARE,) * 3 + (_NO,) * 3
OBJECT = PLAIN * 2 + _QUANTIFIERS + _NUMBERS * 2 + (_BARE,) * 5
# Under negation, an indefinite object takes kein, and the verb has no nicht.
NEGATED_SINGULAR = DEFINITE + (replace(_INDEFINITE, german="kein"),) * 14
NEGATED = NEGATED_SINGULAR + (replace(_BARE, german="kein"),) * 6


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun phrase in one case.

    Attributes:
        tree: The English tree, without leading space.
        german: The German words, without the relative clause.
        agreement: Person and number of the verb if the phrase is the subject.
        noun: Its noun; for a pronoun, a noun without words or traits.
        relative: The German relative clause with its commas, or "".
        definite: Whether its German place is before adverbs and nicht.
        pronoun: Whether it is a personal pronoun.
        negative: Whether it contains kein.
        heavy: Whether anything follows the noun.
    """

    tree: str
    german: str
    agreement: Agreement
    noun: Noun
    relative: str = ""
    definite: bool = True
    pronoun: bool = False
    negative: bool = False
    heavy: bool = False

    @property
    def whole(self) -> str:
        """The German words, including the relative clause."""
        return self.german + self.relative

    @property
    def plural(self) -> bool:
        """Whether it is in the third person plural."""
        return self.agreement == Agreement.THIRD_PLURAL


_compound = functools.cache(compound)


@functools.cache
def modifiers(head: Noun) -> tuple[Pair, ...]:
    """Return the first parts of the compounds that end in `head`."""
    if not head.traits & Trait.COMPOUND_HEAD:
        return ()
    materials = lexicon.MATERIALS if head.traits & Trait.HARD else ()
    others = tuple(m for m in lexicon.MODIFIERS if m.english != head.english)
    return others + materials


def _number(draw: Draw, form: Form) -> Pair:
    """Draw a number above one, most often a small one."""
    if form is Form.DIGITS:
        digits = str(2 + draw.below(998))
        return Pair(f" (CD {digits})", digits)
    bound = draw.pick((10, 20, 97, 97, 997))
    number = 2 + draw.below(bound)
    return Pair(f" {english.cardinal_tree(number)}", cardinal(number))


def draw_noun(draw: Draw, traits: Trait) -> Noun:
    """Draw a noun that has any of the traits, or a compound of it."""
    noun = draw.pick(lexicon.nouns(traits))
    if noun.traits & Trait.COMPOUND_HEAD and draw.chance(0.25):
        return _compound(draw.pick(modifiers(noun)), noun)
    return noun


def noun_phrase(
    draw: Draw,
    traits: Trait,
    case: Case,
    determiners: Sequence[Determiner],
    modified: float = 0.0,
) -> NounPhrase:
    """Draw a noun phrase.

    Args:
        draw: The source of choices.
        traits: The noun has any of these.
        case: The case.
        determiners: Determiners to draw one from.
        modified: Probability of a phrase after the noun (of, with, from).
    """
    noun = draw_noun(draw, traits)
    chosen = draw.pick(determiners)
    phrase = inflected(draw, noun, case, chosen)
    owned = chosen in _POSSESSIVES
    if modified and not owned and draw.chance(modified):
        return _postmodify(draw, phrase)
    return phrase


def inflected(draw: Draw, noun: Noun, case: Case, chosen: Determiner) -> NounPhrase:
    """Combine a determiner, sometimes an adjective, and a noun, all in agreement."""
    gender = Gender.PLURAL if chosen.plural else noun.gender
    tree, german, endings = chosen.tree, "", STRONG
    if chosen.form in (Form.DIGITS, Form.SPELLED):
        number = _number(draw, chosen.form)
        tree, german = number.english, f"{number.german} "
    elif chosen.german:
        german = determiner(chosen.german, case, gender) + " "
        endings = declension_after(chosen.german)
    adjective_leaf, following = "", noun.english  # only its initial counts
    if draw.chance(0.3):
        adjective = draw.pick(lexicon.adjectives(noun.traits))
        adjective_leaf = f" (JJ {adjective.english})"
        german += f"{adjective.stem}{endings[case][gender]} "
        following = adjective.english
    if chosen.form is Form.ARTICLE:
        tree = f" (DT {english.indefinite_article(following)})"
    return NounPhrase(
        tree=f"(NP{tree}{adjective_leaf}{english.noun_leaves(noun, chosen.plural)})",
        german=german + noun_form(noun, case, chosen.plural),
        agreement=Agreement.THIRD_PLURAL if chosen.plural else Agreement.THIRD,
        noun=noun,
        definite=chosen.definite,
        negative=chosen.german == "kein",
    )


def _postmodify(draw: Draw, phrase: NounPhrase) -> NounPhrase:
    """Add "of the teacher", "with the red hat" or "from the village"."""
    traits = phrase.noun.traits
    person = bool(traits & PEOPLE)
    kind = draw.below(3) if person else 0
    if kind == 0 and person and not traits & Trait.RELATION:
        kind = 1
    if kind == 0:
        part = bool(traits & Trait.BUILDING_PART)
        owners = Trait.PLACE if part else Trait.MAN | Trait.WOMAN
        inner = noun_phrase(draw, owners, Case.GENITIVE, DEFINITE)
        word, german = "of", inner.german
    elif kind == 1:
        inner = noun_phrase(draw, Trait.ACCESSORY, Case.DATIVE, SINGULAR)
        word, german = "with", f"mit {inner.german}"
    else:
        inner = noun_phrase(draw, Trait.ORIGIN, Case.DATIVE, (_THE, _THIS))
        word, german = "from", f"aus {inner.german}"
    return replace(
        phrase,
        tree=f"(NP {phrase.tree} (PP (IN {word}) {inner.tree}))",
        german=f"{phrase.german} {german}",
        heavy=True,
    )


FREQUENCY, MANNER = (
    tuple(Pair(f"(ADVP (RB {w.english}))", w.german) for w in word_pairs(section))
    for section in ("frequency", "manner")
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
PARTS_OF_DAY = word_pairs("parts of day")
DAYS, MONTHS = word_pairs("days"), word_pairs("months")
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


def time_adverbial(draw: Draw, tense: Tense) -> Pair:
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


def _prepositions(kind: str) -> tuple[Preposition, ...]:
    """Read the prepositions of a kind, each as often as its share."""
    return tuple(
        Preposition(word.replace("-", " "), german, Case[case.upper()], traits)
        for share, word, german, case, names in word_table(f"prepositions: {kind}")
        for traits in (parse_traits(names),) * int(share)
    )


PLACES = _prepositions("place")
DIRECTIONS = _prepositions("direction")
COMPANIONS = _prepositions("company")
(BENEFICIARY,) = _prepositions("beneficiary")


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
