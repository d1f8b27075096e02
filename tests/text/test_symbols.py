from __future__ import annotations

import pytest

from t2t_repro.errors import UserError
from t2t_repro.text import SymbolTokenizer, load_tokenizer

DIGITS = tuple("0123456789")


def test_ids_are_those_of_the_symbols_in_their_order():
    tokenizer = SymbolTokenizer(DIGITS)
    assert tokenizer.encode("0 1 9") == [3, 4, 12]
    assert tokenizer.vocab_size == 13
    assert tokenizer.encode("1 x 12 <pad>") == [4, 2, 2, 2]  # unknown words
    assert tokenizer.decode(tokenizer.encode("  1   2\t3 ")) == "1 2 3"
    assert not tokenizer.has_samples
    assert tokenizer.encode_sampled(["0 1", "9"], 1.0, "seed") == [[3, 4], [12]]


def test_the_graph_gives_the_same_ids():
    tokenizer = SymbolTokenizer((*DIGITS, "é", "<"))
    texts = ["1 2", "", " \t3\x0b4\r", "x 1", "é\u00a01 é", "</s> < <unk>", "\u20283"]
    ids = tokenizer.in_graph().encode(texts)
    assert ids.to_list() == [tokenizer.encode(text) for text in texts]


def test_the_graph_decodes_to_the_same_text():
    tokenizer = SymbolTokenizer(DIGITS)
    rows = [[3, 4, 1, 5], [0, 3, 2, 4], [1, 1, 1, 1], [12, 11, 10, 9]]
    texts = tokenizer.in_graph().decode(rows)
    expected = [tokenizer.decode(row) for row in rows]
    assert [text.decode() for text in texts.numpy()] == expected


@pytest.mark.parametrize("symbols", [("a", "a"), ("a b",), ("",), ("<pad>",)])
def test_ambiguous_symbols_are_refused(symbols):
    with pytest.raises(ValueError, match="Received"):
        SymbolTokenizer(symbols)


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "other.symbols").write_bytes(b"a\nb\n\xff")
    with pytest.raises(UserError, match="damaged or something else"):
        load_tokenizer(tmp_path / "other.symbols")


def test_a_file_of_unknown_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\.model or \.symbols"):
        load_tokenizer(tmp_path / "vocabulary.txt")
