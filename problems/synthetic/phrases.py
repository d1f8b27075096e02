"""Noun phrases and adverbials of the synthetic grammar, both languages at once.

A phrase is drawn, not parsed: the same random choices write the English tree and
the German words. Relative clauses are added by `clauses`.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from . import english
from .german import (
    DATIVE,
    FIRST,
    FIRST_PLURAL,
    GENITIVE,
    NEUTER,
    NOMINATIVE,
    PLURAL,
    SECOND,
    STRONG,
    THIRD,
    THIRD_PERSON,
    THIRD_PLURAL,
    Noun,
    cardinal,
    compound,
    declension_after,
    determiner,
    noun_form,
)
from .lexicon import ADJECTIVES, MATERIALS, MODIFIERS, Adjective, nouns

_Choice = TypeVar("_Choice")
PEOPLE = "hqx"


class Draw:
    """A source of random choices that is the same on every platform."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def pick(self, choices: Sequence[_Choice]) -> _Choice:
        return choices[int(self._random() * len(choices))]


class Determiner(NamedTuple):
    """A determiner: an English leaf, a German lemma, and what they imply."""

    tree: str
    german: str
    plural: bool = False
    definite: bool = True


_A = "a"
_DIGITS = "#"
_SPELLED = "##"
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
_THESE = Determiner(" (DT these)", "dies", True)
_INDEFINITE = Determiner(_A, "ein", False, False)
_BARE = Determiner("", "", True, False)
_NUMBERS = (Determiner(_SPELLED, "", True, False),) * 4 + (
    Determiner(_DIGITS, "", True, False),
)
_QUANTIFIERS = (
    Determiner(" (DT every)", "jed"),
    Determiner(" (DT all)", "all", True),
    Determiner(" (DT both)", "beid", True),
    Determiner(" (JJ many)", "viel", True, False),
    Determiner(" (DT some)", "einig", True, False),
)
NO = Determiner(" (DT no)", "kein")
WHICH = Determiner(" (WDT which)", "welch")
DEMONSTRATIVE = (_THIS, _THESE)
SINGULAR = (_THE, _THE, _INDEFINITE)
PLURAL_DEFINITE = (_THE._replace(plural=True),)
DEFINITE = (
    (_THE,) * 18 + PLURAL_DEFINITE * 8 + (_THIS, _THIS, _THESE, _THESE) + _POSSESSIVES
)
PLAIN = DEFINITE + (_INDEFINITE,) * 14
SUBJECT = PLAIN * 2 + _QUANTIFIERS * 2 + _NUMBERS * 2 + (_BARE,) * 3 + (NO,) * 3
OBJECT = PLAIN * 2 + _QUANTIFIERS + _NUMBERS * 2 + (_BARE,) * 5
# Under negation an indefinite object takes kein, and the verb no nicht.
NEGATED_SINGULAR = DEFINITE + (Determiner(_A, "kein", False, False),) * 14
NEGATED = NEGATED_SINGULAR + (Determiner("", "kein", True, False),) * 6


class NounPhrase(NamedTuple):
    """A noun phrase in one case.

    Attributes:
        tree: the English tree, without leading space.
        german: the German words, without the relative clause.
        relative: the German relative clause with its commas, or "".
        agreement: what the verb agrees with, FIRST to THIRD_PLURAL.
        definite: whether its German place is before adverbs and nicht.
        pronoun: whether it is a personal pronoun.
        negative: whether it holds kein.
        heavy: whether anything follows the noun.
        noun: its noun; an empty one for a pronoun.
    """

    tree: str
    german: str
    relative: str
    agreement: int
    definite: bool
    pronoun: bool
    negative: bool
    heavy: bool
    noun: Noun

    @property
    def whole(self) -> str:
        """The German words with the relative clause in its place."""
        return self.german + self.relative


@functools.cache
def _adjectives(tags: str) -> tuple[Adjective, ...]:
    return tuple(a for a in ADJECTIVES if set(a.tags) & set(tags))


_find_nouns = functools.cache(nouns)
_compound = functools.cache(compound)


@functools.cache
def modifiers(head: Noun) -> tuple[tuple[str, str], ...]:
    """Returns the first parts of the compounds that end in `head`."""
    if "d" not in head.tags:
        return ()
    materials = MATERIALS if "j" in head.tags else ()
    return tuple(m for m in MODIFIERS if m[0] != head.english) + materials


def _number(draw: Draw, kind: str) -> tuple[str, str]:
    """Draws a number above one, most often a small one."""
    if kind == _DIGITS:
        number = str(2 + draw.below(998))
        return f" (CD {number})", number
    bound = draw.pick((10, 20, 97, 97, 997))
    number = 2 + draw.below(bound)
    return f" {english.cardinal_tree(number)}", cardinal(number)


def draw_noun(draw: Draw, tags: str) -> Noun:
    """Draws a noun that carries one of the tags, or a compound of it."""
    noun = draw.pick(_find_nouns(tags))
    if "d" in noun.tags and draw.chance(0.25):
        return _compound(draw.pick(modifiers(noun)), noun)
    return noun


def noun_phrase(
    draw: Draw,
    tags: str,
    case: int,
    determiners: Sequence[Determiner],
    modified: float = 0.0,
) -> NounPhrase:
    """Draws a noun phrase with a noun that carries one of `tags`.

    Args:
        draw: the source of choices.
        tags: of the noun, see `lexicon`.
        case: NOMINATIVE to GENITIVE.
        determiners: one of these is taken.
        modified: probability of a phrase behind the noun (of, with, from).
    """
    noun = draw_noun(draw, tags)
    chosen = draw.pick(determiners)
    phrase = inflected(draw, noun, case, chosen)
    owned = chosen in _POSSESSIVES
    if modified and not owned and draw.chance(modified):
        return _postmodified(draw, phrase)
    return phrase


def inflected(draw: Draw, noun: Noun, case: int, chosen: Determiner) -> NounPhrase:
    """Builds determiner, sometimes an adjective, and `noun`, all agreeing."""
    plural = chosen.plural
    column = PLURAL if plural else noun.gender
    word = noun.english_plural if plural else noun.english
    tree, german, endings = chosen.tree, "", STRONG
    if tree in (_DIGITS, _SPELLED):
        tree, german = _number(draw, tree)
        german += " "
    elif chosen.german:
        german = determiner(chosen.german, case, column) + " "
        endings = declension_after(chosen.german)
    adjective_tree = ""
    if draw.chance(0.3):
        adjective = draw.pick(_adjectives(noun.tags))
        adjective_tree = f" (JJ {adjective.english})"
        german += f"{adjective.stem}{endings[case][column]} "
        word_after = adjective.english
    else:
        word_after = word
    if tree == _A:
        tree = f" (DT {english.indefinite_article(word_after)})"
    return NounPhrase(
        f"(NP{tree}{adjective_tree}{english.noun_leaves(word, plural)})",
        german + noun_form(noun, case, plural),
        "",
        THIRD_PLURAL if plural else THIRD,
        chosen.definite,
        False,
        chosen.german == "kein",
        False,
        noun,
    )


def _postmodified(draw: Draw, phrase: NounPhrase) -> NounPhrase:
    """Adds "of the teacher", "with the red hat" or "from the village"."""
    tags = phrase.noun.tags
    person = bool(set(tags) & set(PEOPLE))
    kind = draw.below(3) if person else 0
    if kind == 0 and person and "y" not in tags:
        kind = 1
    if kind == 0:
        inner = noun_phrase(draw, "l" if "k" in tags else "hq", GENITIVE, DEFINITE)
        word, german = "of", inner.german
    elif kind == 1:
        inner = noun_phrase(draw, "c", DATIVE, SINGULAR)
        word, german = "with", f"mit {inner.german}"
    else:
        inner = noun_phrase(draw, "g", DATIVE, (_THE, _THIS))
        word, german = "from", f"aus {inner.german}"
    return phrase._replace(
        tree=f"(NP {phrase.tree} (PP (IN {word}) {inner.tree}))",
        german=f"{phrase.german} {german}",
        heavy=True,
    )


_NO_NOUN = Noun("", "", "", NEUTER, "", "", False, "")
_PRONOUNS: tuple[tuple[str, str, int, tuple[str, str, str]], ...] = (
    ("I", "me", FIRST, ("ich", "mich", "mir")),
    ("you", "you", SECOND, ("du", "dich", "dir")),
    ("he", "him", THIRD, ("er", "ihn", "ihm")),
    ("she", "her", THIRD, ("sie", "sie", "ihr")),
    ("we", "us", FIRST_PLURAL, ("wir", "uns", "uns")),
    ("they", "them", THIRD_PLURAL, ("sie", "sie", "ihnen")),
)


def pronoun(draw: Draw, case: int, subject_agreement: int = THIRD) -> NounPhrase:
    """Draws a personal pronoun; "we see us" and the like are left out."""
    row = draw.pick(_PRONOUNS)
    while case != NOMINATIVE and row[2] == subject_agreement != THIRD:
        row = draw.pick(_PRONOUNS)
    word = row[0] if case == NOMINATIVE else row[1]
    return _pronoun(word, row[3][case], row[2])


def anaphor(antecedent: NounPhrase, case: int) -> NounPhrase:
    """Returns the pronoun that stands for `antecedent`, of its German gender."""
    noun = antecedent.noun
    if antecedent.agreement == THIRD_PLURAL:
        column, words = PLURAL, ("they", "them")
    else:
        column, words = noun.gender, ("it", "it")
        if "h" in noun.tags:
            words = ("he", "him")
        elif "q" in noun.tags:
            words = ("she", "her")
    word = words[0 if case == NOMINATIVE else 1]
    return _pronoun(word, THIRD_PERSON[case][column], antecedent.agreement)


def _pronoun(word: str, german: str, agreement: int) -> NounPhrase:
    tree = f"(NP (PRP {word}))"
    return NounPhrase(tree, german, "", agreement, True, True, False, False, _NO_NOUN)
