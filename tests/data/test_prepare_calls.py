"""Preparing hands everything it receives on; all values differ."""

from __future__ import annotations

import hashlib

import pytest
import sentencepiece

from t2t_repro import __version__
from t2t_repro.data import prepare as prepare_module
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import ReversedProblem
from t2t_repro.text import SymbolTokenizer
from tests.support.pairs_problem import DIGITS, LETTERS, SETTINGS, Pairs
from tests.support.recorder import record, spy


@pytest.fixture
def tokenizers(monkeypatch):
    """Put given tokenizers in place of learned ones, and record the requests."""
    given = record(monkeypatch, prepare_module, "given_tokenizers", None)
    learned = record(monkeypatch, prepare_module, "learn_tokenizers", (DIGITS, LETTERS))
    return given, learned


def test_given_tokenizers_are_not_learned(tmp_path, tokenizers, monkeypatch):
    record(monkeypatch, prepare_module, "given_tokenizers", (LETTERS, DIGITS))
    data = prepare(Pairs(), tmp_path, None, SETTINGS)
    assert tokenizers[1].calls == []
    assert data.manifest.vocab_sizes == {
        "inputs": LETTERS.vocab_size,
        "targets": DIGITS.vocab_size,
    }


def test_everything_is_read_from_the_base_and_the_folder_for_downloads(
    tmp_path, tokenizers
):
    problem = Pairs()
    prepare(ReversedProblem(problem), tmp_path / "data", tmp_path / "tmp", SETTINGS)
    names = ["identities", "check", "test", "dev", "train"]
    assert problem.read == [(name, tmp_path / "tmp") for name in names]


def test_the_manifest_has_every_value_under_its_name(tmp_path, tokenizers):
    problem = Pairs()
    manifest = prepare(problem, tmp_path / "data", None, SETTINGS).manifest
    assert (manifest.problem, manifest.problem_version) == ("pairs", 7)
    assert manifest.settings == SETTINGS.recorded()
    assert manifest.sources == {"text": {"lines": 9}}
    assert manifest.tokenizers == {
        "inputs": "pairs.inputs.symbols",
        "targets": "pairs.targets.symbols",
    }
    assert manifest.vocab_sizes == {
        "inputs": DIGITS.vocab_size,
        "targets": LETTERS.vocab_size,
    }
    assert manifest.versions == {
        "t2t_repro": __version__,
        "sentencepiece": sentencepiece.__version__,
    }
    assert manifest == PreparedData.load(tmp_path / "data", problem).manifest
    for name, facts in manifest.files.items():
        content = (tmp_path / "data" / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert facts == {"bytes": len(content), "sha256": digest}
    source, target = PreparedData.load(tmp_path / "data", problem).tokenizers()
    assert (source.symbols, target.symbols) == (DIGITS.symbols, LETTERS.symbols)


class Model(SymbolTokenizer):
    """A tokenizer whose file has another suffix than that of symbols."""

    filename_suffix = ".model"


def test_each_side_has_a_file_of_its_kind(tmp_path, monkeypatch):
    sides = Model(list("1234")), LETTERS
    record(monkeypatch, prepare_module, "given_tokenizers", sides)
    manifest = prepare(Pairs(), tmp_path, None, SETTINGS).manifest
    assert manifest.tokenizers == {
        "inputs": "pairs.inputs.model",
        "targets": "pairs.targets.symbols",
    }
    written = (tmp_path / "pairs.inputs.model").read_bytes()
    assert written == sides[0].to_bytes()


def test_found_data_is_compared_in_every_way_and_read_to_the_end(
    tmp_path, tokenizers, monkeypatch
):
    found = prepare(Pairs(), tmp_path, None, SETTINGS)
    compared = record(monkeypatch, prepare_module, "check_all")
    checked = record(monkeypatch, PreparedData, "check_files")
    problem = Pairs()
    again = prepare(problem, tmp_path, tmp_path / "tmp", SETTINGS)
    assert again.manifest == found.manifest
    assert compared.call == {
        "data": again,
        "settings": SETTINGS,
        "sources": {"text": {"lines": 9}},
    }
    assert checked.call == {"self": again, "checksums": True}
    assert problem.read == [("identities", tmp_path / "tmp")]


def test_settings_come_from_the_problem_by_default(tmp_path, tokenizers):
    assert prepare(Pairs(), tmp_path).manifest.settings["vocab_size"] == 340


def test_opening_compares_what_is_given_and_the_sizes_of_the_files(
    tmp_path, tokenizers, monkeypatch
):
    prepare(Pairs(), tmp_path, None, SETTINGS)
    compared = record(monkeypatch, prepare_module, "check_given")
    checked = record(monkeypatch, PreparedData, "check_files")
    given = {"vocab_size": 355, "num_shards": 3}
    data = open_or_prepare(Pairs(), tmp_path, given, tmp_path / "tmp")
    problem = data.problem
    assert compared.call == {
        "data": data,
        "settings": problem.prepare_settings.replace(**given),
        "given": given,
        "tmp_dir": tmp_path / "tmp",
    }
    assert checked.call == {"self": data, "checksums": False}


def test_missing_data_is_prepared_as_requested(tmp_path, tokenizers, monkeypatch):
    prepared_now = spy(monkeypatch, prepare_module, "prepare")
    problem, given = Pairs(), {"vocab_size": 355, "num_shards": 3}
    open_or_prepare(
        problem,
        tmp_path / "data",
        given,
        tmp_path / "tmp",
        num_workers=3,
        show_progress=True,
    )
    assert prepared_now.call == {
        "problem": problem,
        "data_dir": tmp_path / "data",
        "tmp_dir": tmp_path / "tmp",
        "settings": problem.prepare_settings.replace(**given),
        "num_workers": 3,
        "show_progress": True,
    }


def test_missing_data_is_summarized_and_existing_data_is_not(
    tmp_path, tokenizers, caplog
):
    caplog.set_level("INFO", "t2t_repro")
    open_or_prepare(Pairs(), tmp_path)
    assert "vocabulary of" in caplog.text
    caplog.clear()
    open_or_prepare(Pairs(), tmp_path)
    assert caplog.text == ""
