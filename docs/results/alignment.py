"""Which words of an English sentence and its German translation correspond.

Words are what spaces separate, without their punctuation. The two sentences are drawn
together, and every English word has one German counterpart, so the correspondence
follows from the lexicon unless a word occurs twice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from results.word_translations import german_verb_words, translations
from t2t_repro.features.synthetic.english import leaves
from t2t_repro.features.synthetic.synthetic_corpus import SyntheticSentence

Link = tuple[int, int]  # English word, German word

_PARTICLES = frozenset({"up", "on", "away", "back", "along", "asleep"})
_ARTICLES = frozenset({"der", "die", "das", "den", "dem", "des", "eines", "einer"})


@dataclass(frozen=True)
class WordAlignment:
    """Correspondences of the words of a sentence pair, as in Och and Ney (2003).

    Attributes:
        sure: Links (English word, German word) that are certain.
        possible: These links, and links that an alignment may have or lack: every
            counterpart that the lexicon allows for a German word without a sure link;
            an auxiliary, a separated prefix or "zu" with every English verb of the
            sentence; the particle in "throw away" with the German verb; "of" with a
            German article; "Jahr" and "Uhr" with their number.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def align_words(sentence: SyntheticSentence) -> WordAlignment:
    """Return the correspondences of the words of a sentence pair.

    A link is sure if the lexicon allows each of the two words no other counterpart in
    the sentence pair, or if the words after them are linked: "the" and "der" before
    "dog" and "Hund". Groups such as "garden door" and "Gartentür" come first.
    """
    english, german = _bare(sentence.english), _bare(sentence.german)
    candidates = [_candidates(word, english) for word in german]
    linked: dict[int, tuple[int, ...]] = {}
    while found := _certain(candidates, linked):
        linked |= found
    sure = _pairs(linked)
    unclear = {j for j in range(len(german)) if j not in linked}
    possible = {
        (i, j) for j in unclear for group in candidates[j] for i in group
    } | _pairs({j: _number_beside(j, german, linked) for j in unclear})
    possible |= _verb_links(sentence, german, unclear)
    possible |= _particle_links(sentence, sure)
    possible |= {
        (i, j)
        for i, word in enumerate(english)
        for j, other in enumerate(german)
        if word == "of" and other in _ARTICLES
    }
    return WordAlignment(frozenset(sure), frozenset(sure | possible))


def _pairs(linked: dict[int, tuple[int, ...]]) -> set[Link]:
    return {(i, j) for j, group in linked.items() for i in group}


def _number_beside(
    j: int, german: Sequence[str], linked: dict[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the counterpart of the number in "Jahr 1932" and "4.17 Uhr"."""
    return linked.get(j + {"jahr": 1, "uhr": -1}.get(german[j], 0), ())


def _bare(text: str) -> list[str]:
    return [word.rstrip(".,?").lower() for word in text.split()]


def _candidates(word: str, english: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the positions of the English words or groups that a word translates."""
    options = translations().get(word) or {(word,), (word.replace(".", ":"),)}
    return [
        tuple(range(start, start + len(option)))
        for option in options
        for start in range(len(english) - len(option) + 1)
        if tuple(english[start : start + len(option)]) == option
    ]


def _certain(
    candidates: Sequence[Sequence[tuple[int, ...]]],
    linked: dict[int, tuple[int, ...]],
) -> dict[int, tuple[int, ...]]:
    """Return one more word whose counterpart is certain, long groups first."""
    taken = {i for group in linked.values() for i in group}
    free = {
        j: [group for group in groups if taken.isdisjoint(group)]
        for j, groups in enumerate(candidates)
        if j not in linked
    }
    claims = [(len(group), j, group) for j, groups in free.items() for group in groups]
    for _, j, group in sorted(claims, reverse=True):
        after = linked.get(j + 1, ())
        if group[-1] + 1 in after[:1] or _only_choice(j, group, free):
            return {j: group}
    return {}


def _only_choice(
    j: int, group: tuple[int, ...], free: dict[int, list[tuple[int, ...]]]
) -> bool:
    """Return whether a word and a group have no other counterpart."""
    for other, choices in free.items():
        for choice in choices:
            if other == j and not set(choice) <= set(group):
                return False
            same_or_longer = other != j and len(choice) >= len(group)
            if same_or_longer and not set(choice).isdisjoint(group):
                return False
    return True


def word_of_each_token(tokens: Sequence[str]) -> list[int]:
    """Return the index of the word, in `detokenize(tokens)`, of every token.

    Words are what spaces separate: a comma belongs to the word before it.
    """
    words: list[int] = []
    for before, token in itertools.pairwise(["", *tokens]):
        joined = token in ",.?" or (before, token) == ("can", "not")
        words.append((words[-1] if words else -1) + (not joined))
    return words


def tags(tree: str) -> list[str]:
    """Return the parts of speech of the leaves of a tree, in order."""
    return re.findall(r"\(([^() ]+) [^() ]+\)", tree)


def _tagged_words(sentence: SyntheticSentence) -> list[tuple[int, str, str]]:
    """Return index of the word, token and part of speech of every token."""
    tokens = leaves(sentence.tree)
    return list(
        zip(word_of_each_token(tokens), tokens, tags(sentence.tree), strict=True)
    )


def _verb_links(
    sentence: SyntheticSentence, german: Sequence[str], unclear: set[int]
) -> set[Link]:
    """Link the unclear verb words of German to all verb words of English."""
    verbs = {
        word
        for word, _, tag in _tagged_words(sentence)
        if tag.startswith("VB") or tag in ("MD", "TO", "RP")
    }
    german_verbs = {j for j in unclear if german[j] in german_verb_words()}
    return {(i, j) for j in german_verbs for i in verbs}


def _particle_links(sentence: SyntheticSentence, sure: set[Link]) -> set[Link]:
    """Link a particle to the counterpart of the last verb before it."""
    links: set[Link] = set()
    verb = -1
    for word, token, tag in _tagged_words(sentence):
        if tag.startswith("VB"):
            verb = word
        elif token in _PARTICLES and tag in ("RP", "RB", "JJ"):
            links |= {(word, j) for i, j in sure if i == verb}
    return links
