"""Noun phrases: their number, and the pronouns that refer to them."""

from __future__ import annotations

import functools
import itertools

import pytest

from t2t_repro.features.synthetic import english, german, lexicon, phrases, pronouns
from t2t_repro.features.synthetic.german import Case
from t2t_repro.features.synthetic.lexicon import Frame, find_verbs
from t2t_repro.features.synthetic.word_traits import PEOPLE, Draw, Trait


@pytest.mark.parametrize(
    ("noun", "pronoun"), [("table", "ihn"), ("lamp", "sie"), ("book", "es")]
)
def test_pronoun_has_the_gender_of_the_german_noun(noun, pronoun):
    found = next(n for n in lexicon.NOUNS if n.english == noun)
    the = phrases.DEFINITE[0]
    phrase = phrases.inflected(Draw("x"), found, Case.ACCUSATIVE, the)
    assert pronouns.anaphor(phrase, Case.ACCUSATIVE).german == pronoun


@functools.cache
def noun_phrases(traits: Trait) -> set[str]:
    """Return the English noun phrases of determiner, perhaps an adjective, and noun."""
    found = set()
    for noun, chosen in itertools.product(lexicon.nouns(traits), set(phrases.DEFINITE)):
        heads = [noun, *(german.compound(m, noun) for m in phrases.modifiers(noun))]
        words = [
            "",
            *(a.english for a in lexicon.ADJECTIVES if a.traits & noun.traits),
        ]
        determiner = english.leaves(chosen.tree)[0]
        for head, adjective in itertools.product(heads, words):
            form = head.english_plural if chosen.plural else head.english
            found.add(" ".join(f"{determiner} {adjective} {form}".split()))
    return found


def test_there_are_more_than_a_billion_sentences():
    """Count the sentences "noun-phrase verb-in-the-past noun-phrase." alone.

    They differ pairwise: the noun phrases are told apart as strings, and no verb
    form occurs in a noun phrase, so a sentence can be cut in one way only.
    """
    subjects, nothing_else, total = noun_phrases(PEOPLE), set(), 0
    for verb in find_verbs(Frame.ACCUSATIVE, PEOPLE):
        if verb.english.particle or verb.preposition or verb.no_past:
            continue
        objects = noun_phrases(verb.objects)
        words = {word for phrase in subjects | objects for word in phrase.split()}
        nothing_else |= {verb.english.past} & words
        total += len(subjects) * len(objects)
    assert not nothing_else
    assert total > 10**9


def test_every_counted_kind_of_noun_phrase_is_drawn():
    counted = noun_phrases(Trait.SURFACE)
    draws = map(Draw, map(str, range(40_000)))
    drawn = {
        " ".join(english.leaves(phrase.tree))
        for phrase in (
            phrases.noun_phrase(draw, Trait.SURFACE, Case.ACCUSATIVE, phrases.DEFINITE)
            for draw in draws
        )
    }
    assert drawn == counted
