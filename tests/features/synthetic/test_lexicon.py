from __future__ import annotations

import pytest

from t2t_repro.features.synthetic import lexicon

ENGLISH = {
    "nouns": [n for noun in lexicon.NOUNS for n in (noun.english, noun.english_plural)],
    "adjectives": [adjective.english for adjective in lexicon.ADJECTIVES],
    "first parts": [m.english for m in (*lexicon.MODIFIERS, *lexicon.MATERIALS)],
}


@pytest.mark.parametrize("kind", ENGLISH)
def test_an_english_word_is_listed_once(kind):
    assert len(set(ENGLISH[kind])) == len(ENGLISH[kind])


def test_an_english_verb_with_its_complements_is_listed_once():
    found = [(v.english.base, v.english.particle, v.frame) for v in lexicon.VERBS]
    assert len(set(found)) == len(found)
