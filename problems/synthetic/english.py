"""English inflection, number words and tree leaves for the synthetic grammar.

Trees are Penn Treebank brackets built as strings; a fragment that follows
something carries its leading space. Standard library only.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from .german import FIRST, THIRD

_LEAF = re.compile(r" ([^() ]+)\)")
_IRREGULAR_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
    "knife": "knives",
}


class EnglishVerb(NamedTuple):
    """The forms of a verb and the tree of its particle, as in (picks) up."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    particle: str = ""


def plural(noun: str) -> str:
    """Returns the plural of an English noun."""
    if noun in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[noun]
    return with_s(noun)


def with_s(word: str) -> str:
    """Adds the -s of plurals and of the third person."""
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "o")) else "s")


def verb_forms(base: str, past: str = "", participle: str = "") -> EnglishVerb:
    """Conjugates a verb; `past` and `participle` are given where irregular."""
    third = "has" if base == "have" else with_s(base)
    if not past:
        stem = base[:-1] if base.endswith("e") else base
        stem = base[:-1] + "i" if third.endswith("ies") else stem
        past = stem + "ed"
    doubled = base in ("get", "put", "run", "swim")
    gerund = base + base[-1] if doubled else base.removesuffix("e")
    gerund = base if base == "see" else gerund
    return EnglishVerb(base, third, past, participle or past, gerund + "ing")


def noun_leaves(noun: str, plural_form: bool) -> str:
    """Returns the leaves of a noun; the first part of a compound is an NN."""
    modifier, _, head = noun.rpartition(" ")
    leaf = f" (NNS {head})" if plural_form else f" (NN {head})"
    return f" (NN {modifier}){leaf}" if modifier else leaf


def indefinite_article(following: str) -> str:
    """Returns "a" or "an" for the word that follows."""
    return "an" if following[0] in "aeiou" else "a"


_NUMERALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
)
_ROUND_NUMERALS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = _NUMERALS.split()
_TENS = _ROUND_NUMERALS.split()


def cardinal(number: int) -> str:
    """Spells a number from 0 to 99: 21 is twenty-one."""
    if number < 20:
        return _UNITS[number]
    ten, unit = _TENS[number // 10 - 2], number % 10
    return f"{ten}-{_UNITS[unit]}" if unit else ten


def cardinal_tree(number: int) -> str:
    """Spells a number from 0 to 999 as a tree: (CD ten) or (QP ...)."""
    if number < 100:
        return f"(CD {cardinal(number)})"
    rest = f" (CC and) (CD {cardinal(number % 100)})" if number % 100 else ""
    return f"(QP (CD {cardinal(number // 100)}) (CD hundred){rest})"


def be(past: bool, agreement: int) -> str:
    """Returns the tagged finite form of "be"."""
    if past:
        return "(VBD was)" if agreement in (FIRST, THIRD) else "(VBD were)"
    if agreement == FIRST:
        return "(VBP am)"
    return "(VBZ is)" if agreement == THIRD else "(VBP are)"


class VerbGroup(NamedTuple):
    """An English verb with its auxiliaries, cut where other words may enter.

    A clause reads `auxiliary`, adverb, `core`, complements, `")" * closers`;
    a question puts the subject after `auxiliary`.
    """

    auxiliary: str
    core: str
    closers: int


_TO = "(S (VP (TO to) (VP"
_SEMI_MODALS = {
    "want": ("(VBP want)", "(VBZ wants)", "want", False),
    "wanted": ("(VBD wanted)", "(VBD wanted)", "want", True),
    "had to": ("(VBD had)", "(VBD had)", "have", True),
}


def _do(past: bool, agreement: int) -> str:
    if past:
        return " (VBD did)"
    return " (VBZ does)" if agreement == THIRD else " (VBP do)"


def _semi_modal(tense: str, agreement: int, support: bool, verb: str) -> VerbGroup:
    plain, third, base, past = _SEMI_MODALS[tense]
    if support:
        core = f" (VP (VB {base}) {_TO} (VB {verb})"
        return VerbGroup(_do(past, agreement), core, 4)
    finite = third if agreement == THIRD else plain
    return VerbGroup("", f" {finite} {_TO} (VB {verb})", 3)


def _passive(verb: EnglishVerb, tense: str, agreement: int) -> VerbGroup:
    core = f" (VP (VBN {verb.participle})"
    if tense == "passive":
        return VerbGroup(f" {be(True, agreement)}", core, 1)
    if tense == "passive perfect":
        have = " (VBZ has)" if agreement == THIRD else " (VBP have)"
        return VerbGroup(have, f" (VP (VBN been){core}", 2)
    return VerbGroup(" (MD must)", f" (VP (VB be){core}", 2)


@functools.cache
def verb_group(
    verb: EnglishVerb, tense: str, agreement: int, support: bool
) -> VerbGroup:
    """Returns the verb group of a clause.

    Args:
        verb: its forms; `base` "be" is the copula.
        tense: as in `german.verb_brackets`.
        agreement: FIRST to THIRD_PLURAL.
        support: whether negation or a question calls for an auxiliary.
    """
    if tense.startswith("passive"):
        return _passive(verb, tense, agreement)
    if tense in _SEMI_MODALS:
        return _semi_modal(tense, agreement, support, verb.base)
    if tense == "progressive":
        return VerbGroup(f" {be(False, agreement)}", f" (VP (VBG {verb.gerund})", 1)
    if tense == "perfect":
        have = " (VBZ has)" if agreement == THIRD else " (VBP have)"
        return VerbGroup(have, f" (VP (VBN {verb.participle})", 1)
    if tense not in ("present", "past"):
        return VerbGroup(f" (MD {tense})", f" (VP (VB {verb.base})", 1)
    past = tense == "past"
    if verb.base == "be":
        return VerbGroup(f" {be(past, agreement)}", "", 0)
    if support:
        return VerbGroup(_do(past, agreement), f" (VP (VB {verb.base})", 1)
    if past:
        return VerbGroup("", f" (VBD {verb.past})", 0)
    finite = f"(VBZ {verb.third})" if agreement == THIRD else f"(VBP {verb.base})"
    return VerbGroup("", f" {finite}", 0)


def leaves(tree: str) -> list[str]:
    """Returns the words of a bracketed tree, in order."""
    return _LEAF.findall(tree)


def detokenize(tokens: list[str]) -> str:
    """Joins Treebank tokens into text.

    No space stands before a comma, a full stop or a question mark, and
    "can not" is written "cannot".
    """
    text = " ".join(tokens)
    for mark in ",.?":
        text = text.replace(f" {mark}", mark)
    return text.replace("can not ", "cannot ")
