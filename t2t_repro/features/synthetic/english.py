"""English inflection, number words, and trees.

Trees are Penn Treebank brackets built as strings. A fragment that follows something
carries its leading space.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from t2t_repro.features.synthetic.german import Agreement, Noun
from t2t_repro.features.synthetic.tenses import PASSIVES, Tense
from t2t_repro.features.synthetic.word_traits import word_pairs

_LEAF = re.compile(r" ([^() ]+)\)")


@dataclass(frozen=True, slots=True)
class EnglishVerb:
    """The forms of a verb.

    Attributes:
        base: The infinitive.
        third: The third person singular of the present tense.
        past: The simple past.
        participle: The past participle.
        gerund: The form in -ing.
        particle: The tree of a particle, as in (pick) up, or "".
    """

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    particle: str = ""


def with_s(word: str) -> str:
    """Add the -s of plurals and of the third person."""
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "o")) else "s")


def verb_forms(base: str, past: str = "", participle: str = "") -> EnglishVerb:
    """Conjugate a verb; give `past` and `participle` if they are irregular."""
    third = "has" if base == "have" else with_s(base)
    if not past:
        stem = base[:-1] if base.endswith("e") else base
        stem = base[:-1] + "i" if third.endswith("ies") else stem
        past = stem + "ed"
    doubled = base in ("get", "put", "run", "swim")
    gerund = base + base[-1] if doubled else base.removesuffix("e")
    gerund = base if base == "see" else gerund
    return EnglishVerb(base, third, past, participle or past, gerund + "ing")


def noun_leaves(noun: Noun, plural: bool) -> str:
    """Return the leaves of a noun; the first part of a compound is an NN."""
    word = noun.english_plural if plural else noun.english
    modifier, _, head = word.rpartition(" ")
    leaf = f" (NNS {head})" if plural else f" (NN {head})"
    return f" (NN {modifier}){leaf}" if modifier else leaf


def indefinite_article(following: str) -> str:
    """Return "a" or "an" for the word that follows."""
    return "an" if following[0] in "aeiou" else "a"


_UNITS = [pair.english for pair in word_pairs("numerals from zero")]
_TENS = [pair.english for pair in word_pairs("tens from twenty")]


def cardinal(number: int) -> str:
    """Spell a number from 0 to 99: 21 is twenty-one."""
    if number < 20:
        return _UNITS[number]
    ten, unit = _TENS[number // 10 - 2], number % 10
    return f"{ten}-{_UNITS[unit]}" if unit else ten


def cardinal_tree(number: int) -> str:
    """Spell a number from 0 to 999 as a tree: (CD ten) or (QP ...)."""
    if number < 100:
        return f"(CD {cardinal(number)})"
    rest = f" (CC and) (CD {cardinal(number % 100)})" if number % 100 else ""
    return f"(QP (CD {cardinal(number // 100)}) (CD hundred){rest})"


def be(past: bool, agreement: Agreement) -> str:
    """Return the tagged finite form of "be"."""
    if past:
        singular = agreement in (Agreement.FIRST, Agreement.THIRD)
        return "(VBD was)" if singular else "(VBD were)"
    if agreement == Agreement.FIRST:
        return "(VBP am)"
    return "(VBZ is)" if agreement == Agreement.THIRD else "(VBP are)"


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb with its auxiliaries, split where other words can follow.

    A clause reads `auxiliary`, adverb, `core`, complements, `")" * closers`;
    a question puts the subject after `auxiliary`.

    Attributes:
        auxiliary: The finite auxiliary, or "".
        core: The rest of the verb, with brackets that are still open.
        closers: Number of open brackets.
    """

    auxiliary: str
    core: str
    closers: int


@dataclass(frozen=True, slots=True)
class _SemiModal:
    """A modal with an infinitive with "to", which needs "do" in questions."""

    finite: str
    third: str
    base: str
    past: bool


_TO = "(S (VP (TO to) (VP"
_SEMI_MODALS = {
    Tense.WANT: _SemiModal("(VBP want)", "(VBZ wants)", "want", past=False),
    Tense.WANTED: _SemiModal("(VBD wanted)", "(VBD wanted)", "want", past=True),
    Tense.HAD_TO: _SemiModal("(VBD had)", "(VBD had)", "have", past=True),
}


def _do(past: bool, agreement: Agreement) -> str:
    if past:
        return " (VBD did)"
    return " (VBZ does)" if agreement == Agreement.THIRD else " (VBP do)"


def _have(agreement: Agreement) -> str:
    return " (VBZ has)" if agreement == Agreement.THIRD else " (VBP have)"


def _semi_modal(
    modal: _SemiModal, agreement: Agreement, support: bool, verb: str
) -> VerbGroup:
    if support:
        core = f" (VP (VB {modal.base}) {_TO} (VB {verb})"
        return VerbGroup(_do(modal.past, agreement), core, 4)
    finite = modal.third if agreement == Agreement.THIRD else modal.finite
    return VerbGroup("", f" {finite} {_TO} (VB {verb})", 3)


def _passive(verb: EnglishVerb, tense: Tense, agreement: Agreement) -> VerbGroup:
    core = f" (VP (VBN {verb.participle})"
    if tense is Tense.PASSIVE:
        return VerbGroup(f" {be(True, agreement)}", core, 1)
    if tense is Tense.PASSIVE_PERFECT:
        return VerbGroup(_have(agreement), f" (VP (VBN been){core}", 2)
    return VerbGroup(" (MD must)", f" (VP (VB be){core}", 2)


@functools.cache
def verb_group(
    verb: EnglishVerb, tense: Tense, agreement: Agreement, support: bool
) -> VerbGroup:
    """Return the verb group of a clause.

    Args:
        verb: Its forms; the verb whose `base` is "be" is the copula.
        tense: Its tense.
        agreement: Person and number of the subject.
        support: Whether a negation or a question needs an auxiliary.
    """
    if tense in PASSIVES:
        return _passive(verb, tense, agreement)
    if tense in _SEMI_MODALS:
        return _semi_modal(_SEMI_MODALS[tense], agreement, support, verb.base)
    if tense is Tense.PROGRESSIVE:
        return VerbGroup(f" {be(False, agreement)}", f" (VP (VBG {verb.gerund})", 1)
    if tense is Tense.PERFECT:
        return VerbGroup(_have(agreement), f" (VP (VBN {verb.participle})", 1)
    if tense not in (Tense.PRESENT, Tense.PAST):
        return VerbGroup(f" (MD {tense.value})", f" (VP (VB {verb.base})", 1)
    return _simple_group(verb, tense is Tense.PAST, agreement, support)


def _simple_group(
    verb: EnglishVerb, past: bool, agreement: Agreement, support: bool
) -> VerbGroup:
    if verb.base == "be":
        return VerbGroup(f" {be(past, agreement)}", "", 0)
    if support:
        return VerbGroup(_do(past, agreement), f" (VP (VB {verb.base})", 1)
    if past:
        return VerbGroup("", f" (VBD {verb.past})", 0)
    third = agreement == Agreement.THIRD
    finite = f"(VBZ {verb.third})" if third else f"(VBP {verb.base})"
    return VerbGroup("", f" {finite}", 0)


def preposition_leaf(word: str) -> str:
    """Return the tagged leaf of a preposition."""
    return f"({'TO' if word == 'to' else 'IN'} {word})"


def with_last_child(tree: str, child: str) -> str:
    """Return a tree with one more child at its end."""
    return f"{tree.removesuffix(')')} {child})"


def children_of_noun_phrase(tree: str) -> str:
    """Return the children in "(NP ...)"."""
    return tree.removeprefix("(NP ").removesuffix(")")


def leaves(tree: str) -> list[str]:
    """Return the words of a bracketed tree, in order."""
    return _LEAF.findall(tree)


def detokenize(tokens: list[str]) -> str:
    """Join Treebank tokens into text.

    There is no space before a comma, a full stop or a question mark, and "can not"
    becomes "cannot".
    """
    text = " ".join(tokens)
    for mark in ",.?":
        text = text.replace(f" {mark}", mark)
    return text.replace("can not ", "cannot ")
