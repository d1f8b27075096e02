"""Sampled segmentations have the frequencies of the papers, and depend on the seed."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from collections.abc import Sequence

import pytest
from sentencepiece import sentencepiece_model_pb2

from t2t_repro.text import (
    SentencePieceTokenizer,
    train_sentencepiece,
)
from tests.text.test_subwords import HARD_LINES

PINNED = ["a/b/c/a/b/c", "abc/abc", "abc/ab/c", "abc/abc"]
SEED = "seed"
LINES = [
    "the brown fox and the brown dog jump over the brown hedge",
    "  two  brown  dogs  jump ",
    "größer 漢字 😀 \u2581",
    "",
] * 5


def model(
    kind: str,
    scores: dict[str, float],
    whole: Sequence[str] = (),
    *,
    keep_spaces: bool = False,
) -> SentencePieceTokenizer:
    """Make a model of the given pieces, without a space before the text."""
    proto = sentencepiece_model_pb2.ModelProto()
    types = sentencepiece_model_pb2.ModelProto.SentencePiece
    for piece, type_ in (
        ("<pad>", types.CONTROL),
        ("</s>", types.CONTROL),
        ("<unk>", types.UNKNOWN),
    ):
        proto.pieces.add(piece=piece, score=0, type=type_)
    for piece, score in scores.items():
        proto.pieces.add(piece=piece, score=score)
    for piece in whole:
        proto.pieces.add(piece=piece, score=0, type=types.USER_DEFINED)
    spec = proto.trainer_spec
    spec.model_type = sentencepiece_model_pb2.TrainerSpec.ModelType.Value(kind)
    spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = 0, 1, 2, -1
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = not keep_spaces
    return SentencePieceTokenizer(proto.SerializeToString())


def frequencies(tokenizer, text: str, strength: float, count: int) -> Counter[str]:
    """Count the segmentations of a text, written with a slash between subwords."""
    samples = tokenizer.encode_sampled([text] * count, strength, SEED)
    return Counter("/".join(tokenizer.pieces(ids)) for ids in samples)


def assert_close(found: Counter[str], expected: dict[str, float]) -> None:
    """Check that counts are within five standard deviations of a binomial."""
    assert set(found) <= set(expected)
    count = found.total()
    for name, probability in expected.items():
        deviation = math.sqrt(count * probability * (1 - probability))
        assert abs(found[name] - count * probability) < 5 * deviation


def bpe_dropout(symbols: tuple[str, ...], scores, dropout) -> Counter[str]:
    """Return the probability of each outcome of algorithm 1 by trying everything."""
    merges = [
        place
        for place, pair in enumerate(itertools.pairwise(symbols))
        if "".join(pair) in scores
    ]
    outcomes: Counter[str] = Counter()
    for kept in itertools.product([True, False], repeat=len(merges)):
        probability = math.prod(1 - dropout if k else dropout for k in kept)
        left = list(itertools.compress(merges, kept))
        if not left:
            outcomes["/".join(symbols)] += probability
            continue
        # The highest score; of equal ones the leftmost.
        place = max(left, key=lambda p: (scores[symbols[p] + symbols[p + 1]], -p))
        merged = (*symbols[:place], symbols[place] + symbols[place + 1])
        later = bpe_dropout((*merged, *symbols[place + 2 :]), scores, dropout)
        for outcome, share in later.items():
            outcomes[outcome] += probability * share
    return outcomes


@pytest.mark.parametrize("text", ["abc", "ababab", "abcab", "bcabc"])
def test_bpe_outcomes_have_the_probabilities_of_the_paper(text):
    scores = {"ab": -1, "bc": -2, "ca": -3, "abc": -4, "abab": -5}
    tokenizer = model("BPE", scores | {"a": -6, "b": -7, "c": -8})
    expected = bpe_dropout(tuple(text), scores, 0.4)
    assert sum(expected.values()) == pytest.approx(1)
    assert_close(frequencies(tokenizer, text, 0.4, 10_000), expected)


def test_unigram_segmentations_have_powers_of_their_probabilities():
    scores = {"a": -1.0, "b": -2.0, "ab": -3.5, "c": -1.5, "bc": -2.75}
    tokenizer = model("UNIGRAM", scores)
    segmentations = ["a/b/c", "ab/c", "a/bc"]
    weights = [
        math.exp(0.4 * sum(scores[piece] for piece in text.split("/")))
        for text in segmentations
    ]
    expected = {
        text: weight / sum(weights)
        for text, weight in zip(segmentations, weights, strict=True)
    }
    assert_close(frequencies(tokenizer, "abc", 0.4, 20_000), expected)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    content = train_sentencepiece(LINES, vocab_size=305, model_type=request.param)
    return SentencePieceTokenizer(content)


def test_samples_decode_to_the_text_of_the_usual_subwords(tokenizer):
    lines = [*LINES, "unknown ŵ", "lone \ud800 surrogate"]
    assert tokenizer.has_samples
    usual = [tokenizer.encode(line) for line in lines]
    sampled = tokenizer.encode_sampled(lines, 0.3, SEED)
    assert sampled != usual
    assert [*map(tokenizer.decode, sampled)] == [*map(tokenizer.decode, usual)]


def test_only_the_seed_changes_the_samples(tokenizer):
    first = tokenizer.encode_sampled(LINES, 0.3, "seed")
    assert tokenizer.encode_sampled(LINES, 0.3, "other") != first
    assert tokenizer.encode_sampled(LINES, 0.3, "seed") == first
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode_sampled(LINES, 0.3, "seed") == first


def test_the_samples_are_the_same_in_every_process_and_version():
    # Computed once; SentencePiece's own samples differ in every process.
    tokenizer = model("BPE", {"ab": -1, "abc": -2, "a": -3, "b": -4, "c": -5})
    samples = tokenizer.encode_sampled(["abcabc"] * 4, 0.25, "seed")
    assert ["/".join(tokenizer.pieces(ids)) for ids in samples] == PINNED


def test_without_dropout_bpe_gives_the_subwords_of_sentencepiece():
    lines = [*HARD_LINES, *LINES]
    content = train_sentencepiece(lines, vocab_size=420)
    tokenizer = SentencePieceTokenizer(content)
    assert tokenizer.encode_sampled(lines, 0.0, "") == [*map(tokenizer.encode, lines)]


def test_with_a_large_exponent_unigram_gives_the_subwords_of_sentencepiece():
    content = train_sentencepiece(LINES, vocab_size=305, model_type="unigram")
    tokenizer = SentencePieceTokenizer(content)
    usual = [*map(tokenizer.encode, LINES)]
    assert tokenizer.encode_sampled(LINES, 500.0, "") == usual


@pytest.mark.parametrize("kind", ["BPE", "UNIGRAM"])
def test_unknown_characters_without_bytes_become_one_unknown_subword(kind):
    tokenizer = model(kind, {"a": -1.0, "b": -2.0})
    (ids,) = tokenizer.encode_sampled(["aŵŵbŵ"], 0.5, "")
    assert ids == tokenizer.encode("aŵŵbŵ") == [3, 2, 4, 2]


@pytest.mark.parametrize("kind", ["BPE", "UNIGRAM"])
def test_symbols_of_the_users_model_stay_whole(kind):
    scores = {"ab": -2.0, "a": -1.0, "b": -1.0}
    tokenizer = model(kind, scores, whole=["<ab>", "<abb>"])
    samples = frequencies(tokenizer, "ab<abb>ab<ab>", 0.9, 50)
    assert len(samples) > 1
    assert all(text.split("/")[-1] == "<ab>" for text in samples)
    assert all("/<abb>/" in text for text in samples)


def test_a_model_whose_pieces_have_several_spaces_is_sampled_across_them():
    scores = {"\u2581\u2581a": -1, "\u2581a": -2, "\u2581": -3, "a": -4}
    tokenizer = model("BPE", scores, keep_spaces=True)
    found = tokenizer.encode_sampled(["a  a"], 0.0, "")
    assert found == [tokenizer.encode("a  a")] == [[6, 3]]


def test_a_model_with_unused_pieces_is_not_sampled():
    unused = sentencepiece_model_pb2.ModelProto.SentencePiece.UNUSED
    tokenizer = model("BPE", {"ab": -1, "a": -2, "b": -3})
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.to_bytes())
    proto.pieces[3].type = unused
    tokenizer = SentencePieceTokenizer(proto.SerializeToString())
    assert not tokenizer.has_samples
    assert tokenizer.encode_sampled(["ab"], 0.5, "") == [[4, 5]]


@pytest.mark.parametrize("kind", ["CHAR", "WORD"])
def test_characters_and_words_are_not_sampled(kind):
    tokenizer = model(kind, {"a": -1, "b": -2})
    assert not tokenizer.has_samples
    assert tokenizer.encode_sampled(["a", "b"], 0.5, SEED) == [[3], [4]]
