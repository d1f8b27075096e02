from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.synthetic.alignment import WordAlignment
from t2t_repro.visualization.alignment_error import (
    AlignmentCase,
    alignment_cases,
    alignment_error_rate,
    alignment_errors,
)
from t2t_repro.visualization.alignments import (
    AlignmentHeads,
    align,
    association,
    choose_heads,
    pharaoh,
)
from t2t_repro.visualization.attention import Attention, TokenSequence


def tokens_of(text: str) -> TokenSequence:
    """Make one token per word, and EOS."""
    words = tuple(f"▁{word}" for word in text.split())
    spans = tuple((index, index + 1) for index in range(len(words) + 1))
    return TokenSequence(text, (*words, "</s>"), spans)


def attention_of(source: str, target: str, memory: np.ndarray) -> Attention:
    """Make an attention whose only interesting part is `memory`."""
    source_tokens, target_tokens = tokens_of(source), tokens_of(target)
    s, t = len(source_tokens.tokens), len(target_tokens.tokens)
    assert memory.shape[2:] == (t, s)
    shape = memory.shape[:2]
    return Attention(
        source=source_tokens,
        target=target_tokens,
        encoder_self=np.zeros((*shape, s, s), np.float32),
        decoder_self=np.zeros((*shape, t, t), np.float32),
        memory=memory.astype(np.float32),
        score=0.0,
    )


def pointing(*heads: list[int], keys: int) -> np.ndarray:
    """Return one layer whose heads put all weight of query i on the i-th number."""
    return np.stack([np.eye(keys)[head] for head in heads])[None]


def test_each_target_word_is_linked_to_the_word_with_the_most_weight():
    # Head 1 reverses the order; EOS is query 2 and key 2.
    memory = pointing([1, 0, 2], [0, 1, 2], keys=3)
    attention = attention_of("a b", "x y", memory)
    assert align(attention, AlignmentHeads(1, (1,))) == [(1, 0), (0, 1)]
    assert align(attention, AlignmentHeads(1, (2,))) == [(0, 0), (1, 1)]


def test_several_heads_are_averaged():
    # Head 1 is sure of word 0, and heads 2 and 3 together outvote it.
    votes = pointing([0, 2], [1, 2], [1, 2], keys=3)
    attention = attention_of("a b", "x", votes)
    assert align(attention, AlignmentHeads(1, (1, 2))) == [(0, 0)]
    assert align(attention, AlignmentHeads(1, (1, 2, 3))) == [(1, 0)]


def test_no_word_is_linked_to_eos():
    memory = np.array([[[[0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]]])
    attention = attention_of("a b", "x", memory)
    assert align(attention, AlignmentHeads(1, (1,))) == [(1, 0)]


def test_a_word_can_be_linked_by_the_position_that_reads_it():
    # Query 0 predicts x, query 1 reads x and predicts y, query 2 reads y.
    attention = attention_of("a b", "x y", pointing([1, 0, 1], keys=3))
    assert align(attention, AlignmentHeads(1, (1,))) == [(1, 0), (0, 1)]
    assert align(attention, AlignmentHeads(1, (1,), reading=True)) == [(0, 0), (1, 1)]


def test_subwords_are_merged():
    source = TokenSequence("ab c", ("▁a", "b", "▁c", "</s>"), ((0, 2), (2, 3), (3, 4)))
    memory = np.array([[[[0.3, 0.3, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]]]], np.float32)
    attention = Attention(
        source=source,
        target=tokens_of("x"),
        encoder_self=np.zeros((1, 1, 4, 4)),
        decoder_self=np.zeros((1, 1, 2, 2)),
        memory=memory,
        score=0.0,
    )
    assert align(attention, AlignmentHeads(1, (1,))) == [(0, 0)]


def test_the_pharaoh_format_is_source_and_target_from_zero():
    assert pharaoh([(1, 0), (0, 1), (0, 0)]) == "0-0 0-1 1-0"


def test_an_unknown_layer_or_head_names_what_exists():
    attention = attention_of("a b", "x y", pointing([1, 0, 2], keys=3))
    with pytest.raises(UserError, match=r"received layer 2, expected 1 to 1"):
        align(attention, AlignmentHeads(2, (1,)))
    with pytest.raises(UserError, match=r"received head 0, expected 1 to 1"):
        align(attention, AlignmentHeads(1, (0,)))


def test_a_translation_without_words_cannot_be_aligned():
    attention = attention_of("a b", "", pointing([2], keys=3))
    with pytest.raises(UserError, match="without words"):
        align(attention, AlignmentHeads(1, (1,)))


def test_the_error_rate_is_that_of_och_and_ney():
    # |A| = 3, |S| = 2, |A and S| = 1, |A and P| = 2: 1 - 3/5.
    reference = WordAlignment(
        sure=frozenset({(0, 0), (1, 1)}), possible=frozenset({(0, 0), (1, 1), (2, 2)})
    )
    rate = alignment_error_rate([[(0, 0), (2, 2), (0, 1)]], [reference])
    assert rate == pytest.approx(0.4)


def test_words_that_always_come_together_are_associated():
    together = [[("dog", "hund"), ("a", "ein")], [("dog", "hund"), ("a", "ein")]] * 5
    swapped = [[("dog", "hund"), ("a", "ein")], [("dog", "ein"), ("a", "hund")]] * 5
    assert association(together) > 0.5 > abs(association(swapped))


def test_a_pair_that_occurs_once_is_no_evidence():
    assert association([[("a", "x")], [("b", "y")], [("c", "z")]]) == pytest.approx(0.0)


WORDS = {"dog": "Hund", "cat": "Katze", "sees": "sieht", "a": "ein", "hears": "hört"}


def test_the_heads_that_link_translations_are_chosen_without_references():
    sentences = ["a dog sees a cat", "a cat hears a dog", "a dog hears", "a cat sees"]
    attentions = []
    for sentence in sentences * 2:
        reversed_words = sentence.split()[::-1]
        target = " ".join(WORDS[word] for word in reversed_words)
        last = len(reversed_words)
        straight = [*range(last), last]
        mirrored = [*range(last)[::-1], last]
        memory = np.concatenate(
            [
                pointing(straight, straight, keys=last + 1),
                pointing(straight, mirrored, keys=last + 1),
            ]
        )
        attentions.append(attention_of(sentence, target, memory))
    assert choose_heads(attentions) == AlignmentHeads(2, (2,))


def test_choosing_heads_needs_sentences():
    with pytest.raises(UserError, match="no sentence pairs"):
        choose_heads([])


def referenced(case: AlignmentCase) -> Attention:
    """Return weights on the reference in layer 2, head 1, and elsewhere on word 1."""
    sources, targets = len(case.source.split()), len(case.target.split())
    memory = np.zeros((2, 2, targets + 1, sources + 1))
    memory[..., 0] = 1.0
    for source, target in case.reference.possible:
        memory[1, 0, target, source] = 2.0
    return attention_of(case.source, case.target, memory)


def test_links_of_the_reference_have_no_error_except_those_of_groups():
    cases = list(alignment_cases("dev", 30))
    by_source = {case.source: referenced(case) for case in cases}
    errors = alignment_errors(lambda source, target: by_source[source], cases)
    assert errors.best() == AlignmentHeads(2, (1,))
    # One link per German word misses a word of "garden door" or "in the".
    assert errors.rates[errors.best()] < 0.05
    assert errors.rates[AlignmentHeads(1, (1,))] > 0.8
    assert 0.3 < errors.diagonal < 0.7
    assert errors.cases == 30


def test_the_table_has_a_row_per_layer_and_position_and_a_column_per_head():
    cases = list(alignment_cases("dev", 3))
    by_source = {case.source: referenced(case) for case in cases}
    errors = alignment_errors(lambda source, target: by_source[source], cases)
    header, *rows = errors.rows()
    assert header[2:] == ["head 1", "head 2", "mean of heads"]
    assert [row[:2] for row in rows] == [
        ["1", "predicted"],
        ["1", "read"],
        ["2", "predicted"],
        ["2", "read"],
    ]
    rate = errors.rates[AlignmentHeads(2, (1,))]
    assert rows[2][2] == f"{100 * rate:.1f}"
