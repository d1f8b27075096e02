"""Commands with CTranslate2, before anything is converted or exported."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.cli.main import main
from t2t_repro.features.ctranslate2 import command_engine
from tests.runs.test_run import DIGITS, LETTERS, make_run
from tests.support.recorder import record


@pytest.fixture(autouse=True)
def package(monkeypatch):
    """Let every import of CTranslate2 succeed."""
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace())


def decode(stage, *more):
    source = stage.file("source", "a", "b")
    flags = ["--decode_from_file", source, "--decode_hparams", "beam_size=3,alpha=0.9"]
    return main(["decode", *stage.flags, *flags, *more])


def evaluate(stage, *more):
    source, reference = stage.file("s", "a", "b"), stage.file("r", "x", "y")
    texts = ["--source", source, "--reference", reference]
    hparams = ["--decode_hparams", "beam_size=3,alpha=0.9"]
    return main(["evaluate", *stage.flags, *texts, *hparams, *more])


@pytest.mark.parametrize("command", [decode, evaluate])
@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (["--quantization", "int8"], "--quantization without --engine ctranslate2"),
        (["--export_dir", "e"], "--export_dir without --engine ctranslate2"),
        (["--engine", "onnx"], "onnx"),
        (
            ["--engine", "ctranslate2", "--export_dir", "e"],
            "--export_dir and --checkpoint_path",
        ),
        (
            ["--engine", "ctranslate2", "--checkpoint_path", "best,latest,averaged"],
            "received 3 checkpoints and --engine ctranslate2",
        ),
    ],
)
def test_contradictory_flags_are_refused(stage, capsys, command, flags, answer):
    assert command(stage, *flags) == 2
    assert answer in capsys.readouterr().err
    assert stage.system.calls == []


def test_only_learned_branch_weights_suit_any_engine(stage, capsys):
    flags = ["--engine", "ctranslate2", "--branch_weights", "uniform"]
    assert evaluate(stage, *flags) == 2
    answer = "--branch_weights uniform and --engine ctranslate2"
    assert answer in capsys.readouterr().err


@pytest.fixture
def exported(stage, monkeypatch):
    """Put a system in place of the one in an export."""
    stage.system.description = SimpleNamespace(problem="algorithmic_reverse")
    stage.system.source_tokenizer = stage.system.target_tokenizer = DIGITS
    return record(monkeypatch, command_engine, "CTranslate2System", stage.system)


def decode_export(stage, *more):
    flags = ["--engine", "ctranslate2", "--export_dir", "an export", *more]
    output = ["--output_dir", stage.run, "--t2t_usr_dir", stage.package]
    source = ["--decode_from_file", stage.file("source", "a")]
    return main(["decode", *output, *source, *flags])


def test_decode_translates_with_an_export(stage, exported):
    assert decode_export(stage) == 0
    assert exported.call == {
        "export_dir": "an export",
        "t2t_usr_dir": stage.package,
        "data_dir": str(stage.folder / "data"),
    }


@pytest.mark.parametrize(
    "changes", [{"problem": "another"}, {"source": LETTERS}, {"target": LETTERS}]
)
def test_the_export_of_another_system_is_refused(stage, exported, capsys, changes):
    stage.system.description.problem = changes.get("problem", "algorithmic_reverse")
    stage.system.source_tokenizer = changes.get("source", DIGITS)
    stage.system.target_tokenizer = changes.get("target", DIGITS)
    assert decode_export(stage) == 1
    assert "expected an export of" in capsys.readouterr().err


def test_an_export_and_a_format_contradict_each_other(stage, exported, capsys):
    assert decode_export(stage, "--quantization", "int8") == 2
    assert "--export_dir and --quantization" in capsys.readouterr().err


def export(stage, *more):
    folder = str(stage.folder / "export")
    hparams = ["--decode_hparams", "beam_size=3,alpha=0.9"]
    return main(["export", *stage.flags, *hparams, "--export_dir", folder, *more])


@pytest.mark.parametrize("flag", ["--quantization=int8", "--parity_sentences=file"])
def test_export_refuses_flags_of_the_other_format(stage, capsys, flag):
    assert export(stage, flag) == 2
    name = flag.partition("=")[0]
    assert f"{name} without --format ctranslate2" in capsys.readouterr().err


def test_export_names_what_ctranslate2_cannot_compute_before_it_loads(stage, capsys):
    hparams = catalogue.hparams("transformer_tiny").parse("branched_attention=split")
    make_run(problem="algorithmic_reverse", hparams=hparams).save(stage.run)
    assert export(stage, "--format", "ctranslate2") == 1
    assert "branched_attention=split" in capsys.readouterr().err
    assert stage.loaded.calls == []


@pytest.mark.parametrize(
    ("command", "flag"), [(decode, "--engine"), (export, "--format")]
)
def test_the_missing_package_is_named_first(stage, capsys, monkeypatch, command, flag):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert command(stage, flag, "ctranslate2") == 1
    assert "pip install ctranslate2" in capsys.readouterr().err
    assert stage.loaded.calls == []
