from __future__ import annotations

import pytest

from t2t_repro.errors import UserError
from t2t_repro.text import SymbolTokenizer
from t2t_repro.text.tokenizer_files import load_tokenizers, tokenizer_file_names

DIGITS, LETTERS = SymbolTokenizer(list("0123")), SymbolTokenizer(list("abcd"))


def test_one_vocabulary_is_one_file():
    names = tokenizer_file_names(DIGITS, DIGITS, shared="sorting", prefix="sorting.")
    assert names == {"inputs": "sorting.symbols", "targets": "sorting.symbols"}


def test_two_vocabularies_are_two_files():
    names = tokenizer_file_names(DIGITS, LETTERS, shared="sorting", prefix="sorting.")
    assert names == {
        "inputs": "sorting.inputs.symbols",
        "targets": "sorting.targets.symbols",
    }


def test_one_file_gives_one_tokenizer(tmp_path):
    DIGITS.save(tmp_path / "a.symbols")
    names = {"inputs": "a.symbols", "targets": "a.symbols"}
    source, target = load_tokenizers(tmp_path, names)
    assert source is target
    assert source.to_bytes() == DIGITS.to_bytes()


def test_two_files_give_inputs_and_targets_in_this_order(tmp_path):
    DIGITS.save(tmp_path / "a.symbols")
    LETTERS.save(tmp_path / "b.symbols")
    names = {"targets": "b.symbols", "inputs": "a.symbols"}
    source, target = load_tokenizers(tmp_path, names)
    assert source.to_bytes() == DIGITS.to_bytes()
    assert target.to_bytes() == LETTERS.to_bytes()


@pytest.mark.parametrize("side", ["inputs", "targets"])
def test_a_file_in_another_folder_is_refused(tmp_path, side):
    for folder in (tmp_path, tmp_path / "run"):
        folder.mkdir(exist_ok=True)
        DIGITS.save(folder / "a.symbols")
    names = {"inputs": "a.symbols", "targets": "a.symbols"} | {side: "../a.symbols"}
    with pytest.raises(UserError, match=r"names the file '\.\./a\.symbols'"):
        load_tokenizers(tmp_path / "run", names)


def test_a_missing_file_is_refused(tmp_path):
    names = {"inputs": "a.symbols", "targets": "a.symbols"}
    with pytest.raises(UserError, match=r"a\.symbols"):
        load_tokenizers(tmp_path, names)
