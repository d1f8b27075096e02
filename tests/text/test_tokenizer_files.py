from __future__ import annotations

import pytest

from t2t_repro.errors import UserError
from t2t_repro.text import SymbolTokenizer
from t2t_repro.text.tokenizer_files import load_tokenizers, tokenizer_file_names

DIGITS, LETTERS = SymbolTokenizer(list("0123")), SymbolTokenizer(list("abcd"))


class Model(SymbolTokenizer):
    """A tokenizer whose file has another suffix than that of symbols."""

    filename_suffix = ".model"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (DIGITS, DIGITS, ("sorting.symbols", "sorting.symbols")),
        (DIGITS, LETTERS, ("sorting.inputs.symbols", "sorting.targets.symbols")),
        (Model("ab"), LETTERS, ("sorting.inputs.model", "sorting.targets.symbols")),
    ],
)
def test_one_vocabulary_is_one_file_and_two_are_two(source, target, expected):
    names = tokenizer_file_names(source, target, shared="sorting", prefix="sorting.")
    assert (names["inputs"], names["targets"]) == expected


@pytest.mark.parametrize("targets", ["a.symbols", "b.symbols"])
def test_one_file_gives_one_tokenizer_and_two_give_inputs_and_targets(
    tmp_path, targets
):
    DIGITS.save(tmp_path / "a.symbols")
    LETTERS.save(tmp_path / "b.symbols")
    names = {"targets": targets, "inputs": "a.symbols"}
    source, target = load_tokenizers(tmp_path, names)
    assert source.to_bytes() == DIGITS.to_bytes()
    if targets == "a.symbols":
        assert target is source
    else:
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
