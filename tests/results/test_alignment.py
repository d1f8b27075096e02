"""Word alignments of the grammar's sentences, checked by hand."""

from __future__ import annotations

import functools

from results.alignment import align_words, word_of_each_token
from t2t_repro.features.synthetic.english import detokenize, leaves
from t2t_repro.features.synthetic.synthetic_corpus import SyntheticSentence, sentences


@functools.cache
def sample() -> tuple[SyntheticSentence, ...]:
    return tuple(sentences("train", 2_000))


def find(english: str) -> SyntheticSentence:
    return next(s for s in sentences("test", 60) if s.english == english)


def test_the_words_of_tokens_are_those_between_spaces():
    tokens = ["He", "can", "not", "sleep", ",", "but", "he", "can", "."]
    assert word_of_each_token(tokens) == [0, 1, 1, 2, 2, 3, 4, 5, 5]
    assert detokenize(tokens) == "He cannot sleep, but he can."
    for sentence in sample():
        words = word_of_each_token(leaves(sentence.tree))
        assert sorted(set(words)) == list(range(len(sentence.english.split())))


def named(sentence: SyntheticSentence, links) -> set[str]:
    english, german = sentence.english.split(), sentence.german.split()
    return {f"{english[i]} {german[j]}" for i, j in links}


def test_an_alignment_checked_by_hand():
    sentence = find(
        "You are throwing away a bicycle, but their sad farmers must not sell it."
    )
    found = align_words(sentence)
    # Du wirfst ein Fahrrad weg, aber ihre traurigen Bauern dürfen es nicht verkaufen.
    assert named(sentence, found.sure) == {
        "You Du",
        "throwing wirfst",
        "a ein",
        "bicycle, Fahrrad",
        "but aber",
        "their ihre",
        "sad traurigen",
        "farmers Bauern",
        "must dürfen",
        "not nicht",
        "sell verkaufen.",
        "it. es",
    }
    # The separated prefix belongs to "throwing away", but any verb is possible.
    assert named(sentence, found.possible - found.sure) == {
        "away wirfst",
        *(f"{word} weg," for word in ("are", "throwing", "away", "must", "sell")),
    }


def test_several_words_are_linked_to_one():
    sentence = find("In the evening, you are waking up.")
    sure = named(sentence, align_words(sentence).sure)
    assert {"In Am", "the Am", "evening, Abend"} <= sure
    sentence = find("The aunt is looking for a green glass lamp because she has it.")
    sure = named(sentence, align_words(sentence).sure)
    assert {"glass Glaslampe,", "lamp Glaslampe,"} <= sure
    # ... diese Hüte der Studenten: a genitive.
    sentence = find("The man had to talk about these hats of the students.")
    sure = named(sentence, align_words(sentence).sure)
    assert {"of der", "the der", "The Der"} <= sure


def test_equal_words_are_told_apart_by_the_words_after_them():
    sentence = find("The sister sold the cheap beds that I sell.")
    # Die Schwester hat die billigen Betten verkauft, die ich verkaufe.
    sure = align_words(sentence).sure
    assert {(0, 0), (3, 3), (6, 7)} <= sure


def test_words_that_cannot_be_told_apart_have_possible_links_only():
    sentence = find("The aunt is looking for a green glass lamp because she has it.")
    # Die Tante sucht eine grüne Glaslampe, weil sie sie hat.
    found = align_words(sentence)
    both = {(10, 7), (10, 8), (12, 7), (12, 8)}
    assert both <= found.possible
    assert not both & found.sure


def test_the_word_after_a_time_belongs_to_it():
    sentence = find(
        "The new station was smaller than the new museum when her blankets were not "
        "old at 4:17."
    )
    found = align_words(sentence)
    assert {"at um", "4:17. 4.17"} <= named(sentence, found.sure)
    assert "4:17. Uhr" in named(sentence, found.possible - found.sure)


def test_nearly_all_words_have_a_sure_link_and_all_have_a_possible_one():
    words = sure = 0
    for sentence in sample()[:500]:
        links = align_words(sentence)
        count = len(sentence.german.split())
        assert links.sure <= links.possible
        assert {j for _, j in links.possible} == set(range(count))
        words += count
        sure += len({j for _, j in links.sure})
    assert 0.85 < sure / words < 0.95
