"""Which head finds the noun that "it" refers to, counted on the synthetic grammar.

The paper's figure 4 shows two heads "apparently involved in anaphora resolution". Here
the antecedent of every pronoun is known, so the heads can be counted.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from results.alignment import tags, word_of_each_token
from results.alignment_error import Attend
from t2t_repro.features.attention_view.sentence_attention import Attention
from t2t_repro.features.synthetic.english import leaves
from t2t_repro.features.synthetic.lexicon import NOUNS
from t2t_repro.features.synthetic.synthetic_corpus import SyntheticSentence, sentences
from t2t_repro.features.synthetic.word_traits import PEOPLE

# The grammar says "it" of the last of these nouns.
_THINGS = frozenset(
    noun.english.split()[-1] for noun in NOUNS if not noun.traits & PEOPLE
)


@dataclasses.dataclass(frozen=True)
class AnaphoraCase:
    """A sentence with "it".

    Attributes:
        source: English sentence.
        target: German sentence.
        pronoun: Index of the word "it"; words are what spaces separate.
        antecedent: Index of the noun that it refers to.
        nouns: Indices of all nouns before the pronoun.
        words: Number of words.
    """

    source: str
    target: str
    pronoun: int
    antecedent: int
    nouns: tuple[int, ...]
    words: int

    @classmethod
    def from_sentence(cls, sentence: SyntheticSentence) -> AnaphoraCase | None:
        """Return the case of a sentence, or None without "it"."""
        tokens = leaves(sentence.tree)
        if "it" not in tokens:
            return None
        end = tokens.index("it")
        words = word_of_each_token(tokens)
        before = [*zip(words, tokens, tags(sentence.tree), strict=True)][:end]
        return cls(
            source=sentence.english,
            target=sentence.german,
            pronoun=words[end],
            antecedent=max(x for x, token, _ in before if token.lower() in _THINGS),
            nouns=tuple(x for x, _, tag in before if tag in ("NN", "NNS", "NNP")),
            words=len(sentence.english.split()),
        )


def anaphora_cases(split: str, count: int) -> Iterator[AnaphoraCase]:
    """Yield the first sentences of the synthetic grammar with "it".

    Args:
        split: "train", "dev" or "test"; a model has not seen "dev" and "test".
        count: Number of cases.
    """
    # About one sentence of eight has a case.
    drawn = map(AnaphoraCase.from_sentence, sentences(split, 100 * count))
    yield from itertools.islice(filter(None, drawn), count)


@dataclasses.dataclass(frozen=True)
class AnaphoraAccuracy:
    """Share of pronouns whose strongest attention is their antecedent.

    Attributes:
        accuracy: `[layer, head]`, from 0 to 1.
        cases: Number of pronouns.
        random_word: Accuracy of a random other word.
        nearest_noun: Accuracy of the last noun before the pronoun.
        best_distance: Accuracy of the best fixed distance, such as "three words
            before", chosen on the same cases, so slightly too high.
    """

    accuracy: np.ndarray
    cases: int
    random_word: float
    nearest_noun: float
    best_distance: float

    def best(self) -> tuple[int, int]:
        """Return layer and head of the highest accuracy, counted from 1."""
        layer, head = np.unravel_index(self.accuracy.argmax(), self.accuracy.shape)
        return int(layer) + 1, int(head) + 1

    def rows(self) -> list[list[str]]:
        """Return the accuracies in percent as the rows of a table, with headings."""
        heads = range(1, self.accuracy.shape[1] + 1)
        return [["layer", *(f"head {head}" for head in heads)]] + [
            [str(layer), *(f"{100 * share:.1f}" for share in shares)]
            for layer, shares in enumerate(self.accuracy, start=1)
        ]

    def summary(self) -> str:
        """Return the number of cases and the baselines in one sentence."""
        return (
            f"% of {self.cases} pronouns; always the nearest noun before: "
            f"{100 * self.nearest_noun:.1f}, the best fixed distance: "
            f"{100 * self.best_distance:.1f}, a random word: "
            f"{100 * self.random_word:.1f}."
        )


def anaphora_accuracy(
    attend: Attend, cases: Iterable[AnaphoraCase]
) -> AnaphoraAccuracy:
    """Count, per head of the encoder, the pronouns that attend to their antecedent.

    The weights are those between words: the mean over the subwords of the pronoun and
    the sum over the subwords of each other word. The pronoun itself and EOS do not
    count as the strongest.

    Args:
        attend: Returns the attention of a source and a target.
        cases: Sentences with "it".

    Raises:
        ValueError: If there is no case, or the words of a source are not those of its
            attention.
    """
    cases = list(cases)
    if not cases:
        raise ValueError("expected at least one case. Received: none")
    rows = [_pronoun_row(attend(case.source, case.target), case) for case in cases]
    hits = [
        np.argmax(_without(row, case.pronoun), axis=-1) == case.antecedent
        for row, case in zip(rows, cases, strict=True)
    ]
    return AnaphoraAccuracy(
        accuracy=np.mean(hits, axis=0),
        cases=len(cases),
        random_word=float(np.mean([1 / (case.words - 1) for case in cases])),
        nearest_noun=float(np.mean([c.nouns[-1] == c.antecedent for c in cases])),
        best_distance=_best_distance(cases),
    )


def _pronoun_row(attention: Attention, case: AnaphoraCase) -> np.ndarray:
    """Return the weights from the pronoun to the words, `[layer, head, word]`."""
    words = attention.in_words("encoder_self")[..., case.pronoun, :-1]  # without EOS
    if words.shape[-1] != case.words:
        raise ValueError(
            f"the attention must be of the source {case.source!r} with EOS. Received: "
            f"{attention.source}"
        )
    return words


def _without(row: np.ndarray, word: int) -> np.ndarray:
    others = row.copy()
    others[..., word] = -1.0
    return others


def _best_distance(cases: Sequence[AnaphoraCase]) -> float:
    distances = Counter(case.pronoun - case.antecedent for case in cases)
    return distances.most_common(1)[0][1] / len(cases)
