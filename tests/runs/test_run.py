from __future__ import annotations

import dataclasses
import json

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.runs.run import FORMAT, RUN_FILE, Run, save_tokenizers
from t2t_repro.text import SymbolTokenizer

DIGITS, LETTERS = SymbolTokenizer(list("0123")), SymbolTokenizer(list("abcd"))


def make_run(**changes):
    values = {
        "problem": "algorithmic_identity",
        "model": "transformer",
        "hparams_set": "transformer_tiny",
        "hparams": catalogue.hparams("transformer_tiny"),
        "random_seed": 1,
        "num_replicas": 1,
        "data_dir": "/data",
        "data_digest": "0123",
        "usr_dir": None,
        "tokenizers": {"inputs": "shared.symbols", "targets": "shared.symbols"},
    }
    return Run(**(values | changes))


def test_a_run_is_read_as_it_was_written(tmp_path):
    run = make_run()
    run.save(tmp_path)
    assert Run.load(tmp_path) == run


def test_overrides_are_kept(tmp_path):
    hparams = catalogue.hparams("transformer_tiny").parse("hidden_size=16,num_heads=2")
    make_run(hparams=hparams).save(tmp_path)
    assert Run.load_existing(tmp_path).hparams.hidden_size == 16


def test_a_run_records_the_versions_of_its_libraries(tmp_path):
    make_run().save(tmp_path)
    versions = json.loads((tmp_path / RUN_FILE).read_text())["versions"]
    assert set(versions) == {
        "t2t_repro",
        "tensorflow",
        "keras",
        "tensorflow-text",
        "sentencepiece",
    }


def test_a_folder_without_a_run_loads_as_none(tmp_path):
    assert Run.load(tmp_path) is None


def test_a_command_that_needs_a_run_says_so(tmp_path):
    with pytest.raises(UserError, match="expected the folder of a run"):
        Run.load_existing(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_encoder_layers", 5000),
        ("num_decoder_layers", 10**18),
        ("hidden_size", 2**30),
        ("filter_size", 10**9),
        ("max_length", 10**12),
        ("batch_size", 10**12),
    ],
)
def test_absurd_sizes_are_refused_with_the_name_of_the_file(tmp_path, name, value):
    make_run().save(tmp_path)
    values = json.loads((tmp_path / RUN_FILE).read_text())
    values["hparams"][name] = value
    (tmp_path / RUN_FILE).write_text(json.dumps(values))
    message = rf"{RUN_FILE}: {name}: received {value}, expected at most \d+\."
    with pytest.raises(UserError, match=message):
        Run.load(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", f'{{"format": {FORMAT}}}', "null"]
)
def test_a_damaged_file_is_a_user_error(tmp_path, content):
    (tmp_path / RUN_FILE).write_text(content)
    with pytest.raises(UserError, match="is damaged"):
        Run.load(tmp_path)


def test_a_run_of_another_format_is_a_user_error(tmp_path):
    dataclasses.replace(make_run(), format=99).save(tmp_path)
    with pytest.raises(UserError, match=f"received format 99, expected {FORMAT}"):
        Run.load(tmp_path)


def test_a_run_can_be_resumed_with_the_same_settings_elsewhere(tmp_path):
    make_run().check_resumable(make_run(data_dir="/other", versions={}), tmp_path)


def test_every_difference_is_named(tmp_path):
    other = make_run(
        problem="algorithmic_sort",
        random_seed=2,
        hparams=catalogue.hparams("transformer_tiny").parse("hidden_size=64"),
    )
    with pytest.raises(UserError) as caught:
        make_run().check_resumable(other, tmp_path)
    message = str(caught.value)
    assert "problem is 'algorithmic_identity' there, 'algorithmic_sort' now" in message
    assert "random_seed is 1 there, 2 now" in message
    assert "hidden_size is 128 there, 64 now" in message


def test_the_origins_of_values_are_not_compared(tmp_path):
    same = catalogue.hparams("transformer_tiny").parse("hidden_size=128")
    make_run().check_resumable(make_run(hparams=same), tmp_path)


def test_a_shared_tokenizer_is_written_and_read_once(tmp_path):
    names = save_tokenizers(tmp_path, DIGITS, DIGITS)
    source, target = make_run(tokenizers=names).load_tokenizers(tmp_path)
    assert source is target
    assert source.symbols == DIGITS.symbols


def test_two_tokenizers_keep_their_sides(tmp_path):
    names = save_tokenizers(tmp_path, DIGITS, LETTERS)
    source, target = make_run(tokenizers=names).load_tokenizers(tmp_path)
    assert (source.symbols, target.symbols) == (DIGITS.symbols, LETTERS.symbols)


def test_data_with_the_same_vocabularies_is_accepted(tmp_path):
    run = make_run(tokenizers=save_tokenizers(tmp_path, DIGITS, LETTERS))
    run.check_same_tokenizers(tmp_path, SymbolTokenizer(list("0123")), LETTERS)


@pytest.mark.parametrize("sides", [(LETTERS, LETTERS), (LETTERS, DIGITS)])
def test_data_with_other_vocabularies_is_refused(tmp_path, sides):
    run = make_run(tokenizers=save_tokenizers(tmp_path, DIGITS, LETTERS))
    with pytest.raises(UserError, match="another vocabulary"):
        run.check_same_tokenizers(tmp_path, *sides)
