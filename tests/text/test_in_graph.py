from __future__ import annotations

import pytest
import tensorflow as tf

from t2t_repro.text import SentencePieceTokenizer, SymbolTokenizer, train_sentencepiece


def subwords() -> SentencePieceTokenizer:
    lines = [f"{letter} 1 2 3 {letter}{letter}" for letter in "abcdefgh"] * 5
    return SentencePieceTokenizer(train_sentencepiece(lines, vocab_size=290))


@pytest.fixture(params=["subwords", "symbols"])
def tokenizer(request: pytest.FixtureRequest):
    if request.param == "subwords":
        return subwords()
    return SymbolTokenizer(tuple("123"))


class Echo(tf.Module):
    """A module that encodes and decodes, as a served system does."""

    def __init__(self, in_graph) -> None:
        super().__init__()
        self.in_graph = in_graph

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def echo(self, texts: tf.Tensor) -> tf.Tensor:
        return self.in_graph.decode(self.in_graph.encode(texts).to_tensor())


def test_a_saved_model_carries_its_tokenizer(tmp_path, tokenizer):
    echo = Echo(tokenizer.in_graph())
    tf.saved_model.save(echo, str(tmp_path / "echo"))
    loaded = tf.saved_model.load(str(tmp_path / "echo"))
    assert loaded.echo(tf.constant(["1 2 3", ""])).numpy().tolist() == [b"1 2 3", b""]


def test_the_operations_run_inside_a_dataset(tokenizer):
    in_graph = tokenizer.in_graph()
    texts = tf.data.Dataset.from_tensor_slices(["1 2", "3 1"]).batch(2)
    (ids,) = texts.map(in_graph.encode)
    assert ids.to_list() == [tokenizer.encode("1 2"), tokenizer.encode("3 1")]


@pytest.mark.parametrize(
    "wrong",
    [
        b"1 \xff 2",
        b"\xf0\x9f\x99 1",  # three of four bytes
        b"1\xed\xa0\x80",  # a surrogate
        b"\xc0\xaf\x80 3",  # an overlong form
        b"1 2\xe2\x82",
        b"\x00\x80 1",
    ],
)
def test_bytes_that_are_not_utf8_are_read_as_by_python(tokenizer, wrong):
    (ids,) = tokenizer.in_graph().encode([wrong]).to_list()
    assert ids == tokenizer.encode(wrong.decode("utf-8", "replace"))
