"""A vocabulary is learned from its side with its settings; all values differ."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from t2t_repro.data import vocabulary
from t2t_repro.data.prepared import sources_of
from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.data.vocabulary import given_tokenizers, learn_tokenizers, random_sample
from t2t_repro.errors import UsageError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import SymbolTokenizer
from tests.support.pairs_problem import SETTINGS, TEXT, Pairs
from tests.support.recorder import record


def numbered(count):
    return ((f"source {n}", f"target {n}") for n in range(count))


@pytest.mark.parametrize("count", [0, 1, 10])
def test_a_short_text_is_taken_whole(count):
    assert random_sample(numbered(count), 10) == list(numbered(count))


@pytest.mark.parametrize("count", [11, 20, 1_000])
def test_a_long_text_is_sampled_in_its_order_and_always_alike(count):
    sample = random_sample(numbered(count), 10)
    numbers = [int(source.split()[1]) for source, _ in sample]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 10
    assert random_sample(numbered(count), 10) == sample


def test_every_part_of_a_text_has_the_same_share_of_the_sample():
    sample = random_sample(numbered(10_000), 2_000)
    tenths = Counter(int(source.split()[1]) // 1_000 for source, _ in sample)
    # 200 are expected; the standard deviation is 13.
    assert all(140 < tenths[tenth] < 260 for tenth in range(10))


class TwoLanguages(Problem):
    name = "two_languages"

    def pairs(self, split, tmp_dir):
        for _ in range(500):
            yield "hello hello world", "grüße grüße allerseits"


def test_a_shared_vocabulary_knows_both_sides_of_a_text_that_is_sampled(monkeypatch):
    monkeypatch.setattr(vocabulary, "MAX_TRAINING_PAIRS", 2)
    settings = PrepareSettings(vocab_size=290)
    source, target = learn_tokenizers(TwoLanguages(), settings, None)
    assert source is target
    for word in ("hello", "grüße"):
        assert len(source.encode(word)) < len(word.encode()), word


class Model:
    """A SentencePiece model in memory, named after its text or its file."""

    def __init__(self, content):
        self.content = content.decode() if isinstance(content, bytes) else content

    def to_bytes(self):
        return str(self.content).encode()

    def has_byte_fallback(self):
        return self.content != "poor"

    def __eq__(self, other):
        return self.content == other.content

    __hash__ = None


@pytest.fixture
def sentencepiece_calls(monkeypatch):
    monkeypatch.setattr(vocabulary, "SentencePieceTokenizer", Model)
    return record(
        monkeypatch,
        vocabulary,
        "train_sentencepiece",
        lambda lines, **_: f"model of {' '.join(lines)}".encode(),
    )


def lines_of(call):
    return [*call["lines"]]


SOURCES = [source for source, _ in TEXT["train"]]
TARGETS = [target for _, target in TEXT["train"]]


def test_a_shared_vocabulary_is_learned_from_both_sides(sentencepiece_calls, tmp_path):
    problem, settings = Pairs(), SETTINGS.replace(shared_vocabulary=True)
    source, target = learn_tokenizers(problem, settings, tmp_path)
    assert source is target
    assert lines_of(sentencepiece_calls.call) == [*SOURCES, *TARGETS]
    assert problem.read == [("train", tmp_path)]


def test_separate_vocabularies_are_learned_from_one_side_each(sentencepiece_calls):
    source, target = learn_tokenizers(Pairs(), SETTINGS, None)
    first, second = sentencepiece_calls.calls
    assert (lines_of(first), lines_of(second)) == (SOURCES, TARGETS)
    assert source == Model(f"model of {' '.join(SOURCES)}")
    assert target == Model(f"model of {' '.join(TARGETS)}")


def symbols_problem(kind, **text):
    problem = Pairs(**text)
    problem.vocabulary = Vocabulary(kind=kind, symbols=("x", "y"))
    return problem


def test_targets_of_symbols_have_the_symbols_that_the_model_writes(sentencepiece_calls):
    problem = symbols_problem("subwords_to_symbols")
    source, target = learn_tokenizers(problem, SETTINGS, None)
    assert lines_of(sentencepiece_calls.call) == SOURCES
    assert source == Model(f"model of {' '.join(SOURCES)}")
    assert target.symbols == SymbolTokenizer(["A", "B", "C"]).symbols


def test_inputs_beside_symbols_may_have_the_users_model(sentencepiece_calls):
    problem = symbols_problem("subwords_to_symbols")
    source, _ = learn_tokenizers(problem, with_models("own", None), None)
    assert source == Model("own")
    assert sentencepiece_calls.calls == []


def test_symbols_that_a_sample_misses_are_in_the_vocabulary(
    sentencepiece_calls, monkeypatch
):
    monkeypatch.setattr(vocabulary, "MAX_TRAINING_PAIRS", 1)
    _, target = learn_tokenizers(symbols_problem("subwords_to_symbols"), SETTINGS, None)
    assert len(lines_of(sentencepiece_calls.call)) == 1
    assert target.symbols == SymbolTokenizer(["A", "B", "C"]).symbols


def with_models(source, target):
    return dataclasses.replace(SETTINGS, source_model=source, target_model=target)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("own", None, ("own", "own")),
        ("own", "other", ("own", "other")),
        ("own", "own", ("own", "own")),
    ],
)
def test_the_users_models_are_those_of_their_sides(
    sentencepiece_calls, source, target, expected
):
    found = given_tokenizers(Pairs(), with_models(source, target))
    assert tuple(model.content for model in found) == expected
    assert (found[0] is found[1]) == (expected[0] == expected[1])


def test_without_models_the_vocabulary_is_learned():
    assert given_tokenizers(Pairs(), SETTINGS) is None


def test_a_model_of_the_targets_alone_is_refused():
    with pytest.raises(UsageError, match="a model for the targets only"):
        given_tokenizers(Pairs(), with_models(None, "other"))


def test_a_problem_of_symbols_has_these_and_a_mixed_one_learns():
    source, target = given_tokenizers(symbols_problem("symbols"), SETTINGS)
    assert source is target
    assert source.symbols == SymbolTokenizer(["x", "y"]).symbols
    mixed = symbols_problem("subwords_to_symbols")
    assert given_tokenizers(mixed, with_models("own", None)) is None


@pytest.mark.parametrize("model", ["poor", "own"])
def test_a_model_without_bytes_is_reported(sentencepiece_calls, caplog, model):
    given_tokenizers(Pairs(), with_models(model, None))
    warned = "poor has no byte fallback" in caplog.text
    assert warned == (model == "poor")


def test_sources_are_the_text_and_the_users_models(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    settings = with_models(str(tmp_path / "a"), str(tmp_path / "b"))
    problem = Pairs()
    found = sources_of(problem, settings, Path("tmp"))
    assert problem.read == [("identities", Path("tmp"))]
    assert set(found) == {"text", "source_model", "target_model"}
    for name, role in (("a", "source_model"), ("b", "target_model")):
        digest = hashlib.sha256(name.encode()).hexdigest()
        assert found[role] == {"bytes": 1, "sha256": digest}
