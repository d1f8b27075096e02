"""tensor2tensor's vocabularies: the same ids and texts as from tensor2tensor itself.

`tests/golden/make_t2t_vocabularies.py` runs tensor2tensor.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.constants import EOS_ID
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.subword_encoder import SubwordTokenizer
from t2t_repro.features.tensor2tensor.token_encoders import (
    ByteTokenizer,
    TokenTokenizer,
)
from t2t_repro.text import load_tokenizer
from t2t_repro.text.lines import is_blank
from t2t_repro.text.tokenizer import distinct_entries

GOLDEN = Path(__file__).parents[2] / "golden" / "t2t_vocabularies.json"
KINDS = ("subwords", "tokens", "bytes")


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizers(golden):
    files = {kind: golden[kind]["file"].encode() for kind in KINDS}
    return {
        "subwords": SubwordTokenizer(files["subwords"]),
        "tokens": TokenTokenizer(files["tokens"]),
        "bytes": ByteTokenizer(),
    }


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def texts_of(in_graph, rows) -> list[str]:
    ids = tf.ragged.constant(rows, dtype=tf.int32).to_tensor()
    return [text.decode() for text in in_graph.decode(ids).numpy()]


def test_lines_have_tensor2tensors_ids_and_texts(golden, tokenizers, kind):
    tokenizer, of = tokenizers[kind], golden[kind]
    for line, ids, text in zip(of["lines"], of["ids"], of["texts"], strict=True):
        if not is_blank(line):
            assert (tokenizer.encode(line), tokenizer.decode(ids)) == (ids, text)


def test_ids_that_a_model_may_write_have_tensor2tensors_text(golden, tokenizers, kind):
    rows, texts = golden[kind]["random_ids"], golden[kind]["random_texts"]
    assert [*map(tokenizers[kind].decode, rows)] == texts


def test_the_graph_has_the_ids_and_texts_of_python(golden, tokenizers, kind):
    tokenizer, of = tokenizers[kind], golden[kind]
    lines, in_graph = [*of["lines"], "", " \u200b"], tokenizer.in_graph()
    rows = [tokenizer.encode(line) for line in lines]
    assert in_graph.encode(tf.constant(lines)).to_list() == rows
    rows += of["random_ids"]
    assert texts_of(in_graph, rows) == [*map(tokenizer.decode, rows)]
    pieces = [piece.decode() for piece in in_graph.pieces(rows[0]).numpy()]
    assert pieces == tokenizer.pieces(rows[0])


def test_the_graph_knows_the_words_of_subwords(golden, tokenizers):
    tokenizer = tokenizers["subwords"]
    source = np.random.default_rng(1)
    rows = [tokenizer.encode(line) for line in golden["subwords"]["lines"]]
    rows += source.integers(0, tokenizer.vocab_size, (200, 20)).tolist()
    ids = [token for row in rows for token in (*row, EOS_ID)]
    starts = [start for start, _ in tokenizer.word_spans(ids)]
    begins = tokenizer.in_graph().begins_word(tf.constant(ids, tf.int32)).numpy()
    assert np.flatnonzero(begins).tolist() == starts


@pytest.mark.parametrize(
    "words",
    [["the", "old", "(very", "old)", "horse."], ["don't", "go,", "I", "said"]],
)
def test_words_of_a_text_are_found_again(tokenizers, words):
    for kind in ("subwords", "bytes"):
        tokenizer = tokenizers[kind]
        ids = tokenizer.encode(" ".join(words))
        spans = tokenizer.word_spans(ids)
        assert [tokenizer.decode(ids[a:b]).strip() for a, b in spans] == words
        ends = [0, *itertools.chain(*spans), len(ids)]
        assert ends[::2] == ends[1::2]  # no id is left out


def test_a_file_is_read_by_its_suffix_and_written_as_it_was(tokenizers, kind, tmp_path):
    path = tmp_path / f"vocabulary{tokenizers[kind].filename_suffix}"
    tokenizers[kind].save(path)
    loaded = load_tokenizer(path)
    assert type(loaded) is type(tokenizers[kind])
    assert loaded.to_bytes() == tokenizers[kind].to_bytes()


def test_older_files_and_repeated_entries_are_read():
    letters = [f"'{letter}'" for letter in "\\_u;0123456789ab <pad>EOS"]
    content = "\n".join(["'<pad>'", '"<EOS>"', *letters, "'ab_'", "'ab_'", "'b a'"])
    tokenizer = SubwordTokenizer(content.encode())
    # Of equal entries, tensor2tensor takes the last.
    assert tokenizer.encode("ab") == [tokenizer.vocab_size - 2]
    assert len(set(distinct_entries(tokenizer))) == tokenizer.vocab_size


def test_further_ids_change_no_text(golden, tokenizers):
    tokenizer = tokenizers["subwords"]
    padded = tokenizer.padded(tokenizer.vocab_size + 3)
    assert padded.vocab_size == tokenizer.vocab_size + 3
    lines = golden["subwords"]["lines"][:50]
    assert [*map(padded.encode, lines)] == [*map(tokenizer.encode, lines)]
    assert padded.decode([padded.vocab_size - 1]) == ""


@pytest.mark.parametrize(
    ("load", "content", "message"),
    [
        (SubwordTokenizer, b"'a'\n'b'\n", "begins with \\['a', 'b'\\]"),
        (SubwordTokenizer, b"'<pad>_'\n'<EOS>_'\n'ab_'\n", "without an entry for"),
        (SubwordTokenizer, b"\xff\xfe", "expected UTF-8"),
        (TokenTokenizer, b"the\nhouse\nUNK\n", "begins with \\['the', 'house'\\]"),
        (TokenTokenizer, b"<pad>\n<EOS>\nthe\n", "without a token for unknown words"),
    ],
)
def test_other_files_are_refused(load, content, message):
    with pytest.raises(UserError, match=message):
        load(content)


def test_words_cannot_be_counted_in_subwords(tokenizers):
    with pytest.raises(UserError, match="only the subwords of SentencePiece"):
        tokenizers["subwords"].word_starts()
