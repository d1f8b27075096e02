from __future__ import annotations

import numpy as np
import pytest

from results.anaphora import (
    AnaphoraCase,
    anaphora_accuracy,
    anaphora_cases,
)
from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
)
from t2t_repro.features.synthetic.synthetic_corpus import sentences

# The pronouns are words 7 and 8; "dog" is word 4 of the first, "hat" 1 of the second.
CASES = [
    AnaphoraCase("A man sees a dog and sells it.", "", 7, 4, (1, 4), 8),
    AnaphoraCase("The hat is old when a boy sells it.", "", 8, 1, (1, 6), 9),
]


def encoder_attention(source: str, weights: np.ndarray) -> Attention:
    tokens = (*(f"\u2581{word}" for word in source.split()), "</s>")
    spans = tuple((index, index + 1) for index in range(len(tokens)))
    return Attention(
        source=TokenSequence(source, tokens, spans),
        target=TokenSequence("", ("</s>",), ((0, 1),)),
        encoder_self=weights,
        decoder_self=np.ones((1, 1, 1, 1)),
        memory=np.ones((1, 1, 1, len(tokens))),
        score=0.0,
    )


def attend(source: str, target: str) -> Attention:
    """Head 1: the pronoun itself and EOS, then word 1. Head 2: word 4 with 0.6."""
    count = len(source.split()) + 1
    weights = np.zeros((1, 2, count, count))
    weights[0, 0, :, 1] = 0.1
    weights[0, 0, range(count), range(count)] = 0.5
    weights[0, 0, :, -1] += 0.4
    weights[0, 1, :, 4] = 0.6
    weights[0, 1, :, 2] = 0.4
    return encoder_attention(source, weights)


def test_accuracy_is_the_share_of_pronouns_that_attend_most_to_their_antecedent():
    found = anaphora_accuracy(attend, CASES)
    # The antecedents are words 4 and 1.
    np.testing.assert_allclose(found.accuracy, [[0.5, 0.5]])
    assert found.cases == 2


def test_baselines_are_counted_by_hand():
    found = anaphora_accuracy(attend, CASES)
    assert found.random_word == pytest.approx((1 / 7 + 1 / 8) / 2)
    assert found.nearest_noun == 0.5  # "dog" is the nearest noun, "hat" is not
    assert found.best_distance == 0.5  # 3 and 7 words


def test_the_best_head_is_counted_from_one():
    found = anaphora_accuracy(attend, CASES[1:])
    # The pronoun itself and EOS do not count.
    assert (found.best(), found.accuracy[0, 0]) == ((1, 1), 1.0)
    assert found.rows() == [["layer", "head 1", "head 2"], ["1", "100.0", "0.0"]]


def test_other_words_than_those_of_the_case_are_refused():
    def other(source: str, target: str) -> Attention:
        return attend("Nine words are in this sentence of nine words.", target)

    with pytest.raises(ValueError, match="must be of the source"):
        anaphora_accuracy(other, CASES[:1])
    with pytest.raises(ValueError, match="at least one case"):
        anaphora_accuracy(attend, [])


@pytest.mark.parametrize(
    ("english", "pronoun", "antecedent"),
    [
        ("The aunt is looking for a green glass lamp because she has it.", 12, 8),
        ("While the bicycle was clean, the doctor wanted to sell it.", 10, 2),
        # A person is nearer.
        (
            "You are throwing away a bicycle, but their sad farmers must not sell it.",
            13,
            5,
        ),
    ],
)
def test_it_refers_to_the_noun_checked_by_hand(english, pronoun, antecedent):
    sentence = next(x for x in sentences("test", 60) if x.english == english)
    case = AnaphoraCase.from_sentence(sentence)
    assert (case.pronoun, case.antecedent) == (pronoun, antecedent)


def test_cases_are_sentences_of_the_split_with_it():
    cases = list(anaphora_cases("dev", 100))
    assert len(cases) == 100
    for case in cases:
        words = [word.strip(".,") for word in case.source.split()]
        assert words[case.pronoun] == "it"
        assert case.antecedent in case.nouns
        assert case.words == len(words)
        assert all(noun < case.pronoun for noun in case.nouns)
