"""A checkpoint is converted once, and again if its content or the search changes."""

from __future__ import annotations

import dataclasses
import sys
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ctranslate2 import ctranslate2_system, ctranslate2_translator
from t2t_repro.features.ctranslate2.ctranslate2_export import (
    COMPARED_SENTENCES,
    comparison_sentences,
)
from t2t_repro.features.ctranslate2.ctranslate2_system import (
    DESCRIPTION_FILE,
    Conversion,
    CTranslate2System,
    ExportDescription,
    check_exportable,
    checkpoint_digest,
    position_count,
)
from t2t_repro.runs import System
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.runs.test_run import DIGITS, LETTERS, make_run
from tests.support.recorder import record

LONGEST = 48
HPARAMS = DecodeHParams(beam_size=3, extra_length=7)


def description(**changes):
    values = {
        "problem": "algorithmic_reverse",
        "hparams_set": "a set",
        "checkpoint": "a path",
        "step": 60,
        "checkpoint_digest": "0123",
        "quantization": "int16",
        "positions": 77,
        "max_input_length": LONGEST,
        "tokenizers": {"inputs": "inputs.symbols", "targets": "targets.symbols"},
        "decode_hparams": {"beam_size": 4},
        "parity": {"sentences": 9},
        "versions": {"ctranslate2": "1"},
    }
    return ExportDescription(**(values | changes))


def write_export(folder, **changes):
    folder.mkdir(parents=True)
    DIGITS.save(folder / "inputs.symbols")
    LETTERS.save(folder / "targets.symbols")
    description(**changes).save(folder)
    return folder


@pytest.fixture(autouse=True)
def package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace())


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    hparams = catalogue.hparams("transformer_tiny").parse(f"max_length={LONGEST}")
    make_run(hparams=hparams, problem="algorithmic_reverse").save(folder)
    for step, content in [(40, b"forty"), (60, b"sixty")]:
        (folder / f"model.ckpt-{step}.index").write_bytes(content)
    return folder


def test_a_conversion_is_named_after_content_format_and_positions(run):
    plan = Conversion.plan(run, quantization="int8", decode_hparams=HPARAMS)
    assert plan.checkpoint == str(run / "model.ckpt-60")
    digest = checkpoint_digest(plan.checkpoint)[:12]
    assert plan.folder == run / "ctranslate2" / f"model.ckpt-60-{digest}-int8-1024"
    assert not plan.is_done()
    assert plan.data_dir == Run.load_existing(run).data_dir


def test_other_content_formats_checkpoints_and_lengths_have_other_folders(run):
    folders = {Conversion.plan(run).folder}
    folders.add(Conversion.plan(run, quantization="int8").folder)
    folders.add(Conversion.plan(run, str(run / "model.ckpt-40")).folder)
    longer = HPARAMS.replace(extra_length=1000)
    folders.add(Conversion.plan(run, decode_hparams=longer).folder)
    (run / "model.ckpt-60.index").write_bytes(b"other")
    folders.add(Conversion.plan(run).folder)
    assert len(folders) == 5


@pytest.fixture
def converted(monkeypatch):
    def export(export_dir, decode_hparams, *, quantization):
        calls.append((export_dir, decode_hparams, quantization))
        digest = checkpoint_digest(loaded.calls[-1]["checkpoint"])
        write_export(export_dir, checkpoint_digest=digest, quantization=quantization)
        return SimpleNamespace(lines=lambda: ["a figure", "another"])

    calls = []
    loaded = record(
        monkeypatch, System, "load", SimpleNamespace(export_ctranslate2=export)
    )
    return SimpleNamespace(calls=calls, loaded=loaded)


def test_a_conversion_exports_the_checkpoint_and_logs_the_comparison(
    run, converted, caplog
):
    caplog.set_level("INFO", "t2t_repro")
    plan = Conversion.plan(
        run, str(run / "model.ckpt-40"), quantization="int8", decode_hparams=HPARAMS
    )
    plan.make()
    assert [*converted.loaded.call.values()] == [str(run), plan.checkpoint, None]
    ((folder, hparams, quantization),) = converted.calls
    assert (folder, quantization) == (plan.folder, "int8")
    assert (hparams.beam_size, hparams.extra_length) == (3, 7)
    assert caplog.messages[-2:] == ["a figure", "another"]
    assert plan.is_done()


def test_a_conversion_is_made_once(run, converted):
    for _ in range(2):
        system = CTranslate2System.load(run)
        Conversion.plan(run).make()
    assert len(converted.calls) == 1
    assert system.data_dir == Run.load_existing(run).data_dir


def test_translators_of_a_system_share_one_engine(run, converted, monkeypatch):
    loaded = record(monkeypatch, ctranslate2_system, "load_engine", "the engine")
    system = CTranslate2System.load(run)
    system.num_threads = 3
    first, second = (
        system.translator(HPARAMS.replace(alpha=alpha)) for alpha in (0.1, 0.2)
    )
    assert first is not second
    assert loaded.call == {
        "model_dir": system.export_dir,
        "quantization": "float32",
        "num_threads": 3,
    }


def test_a_conversion_whose_files_have_changed_is_refused(run, converted):
    CTranslate2System.load(run)
    LETTERS.save(Conversion.plan(run).folder / "inputs.symbols")
    with pytest.raises(UserError, match=r"inputs.symbols is missing or has changed"):
        CTranslate2System.load(run)


def test_a_conversion_that_cannot_be_read_is_not_made_again(run, converted):
    plan = Conversion.plan(run)
    plan.folder.mkdir(parents=True)
    (plan.folder / DESCRIPTION_FILE).mkdir()
    with pytest.raises(UserError, match=rf"cannot read .*{DESCRIPTION_FILE}: Is a dir"):
        CTranslate2System.load(run)
    assert converted.calls == []


def test_a_conversion_that_is_being_made_is_refused(run, monkeypatch):
    def export(export_dir, *_, quantization):
        with pytest.raises(UserError, match="is converting a checkpoint in"):
            Conversion.plan(run).make()
        return SimpleNamespace(lines=list)

    record(monkeypatch, System, "load", SimpleNamespace(export_ctranslate2=export))
    Conversion.plan(run).make()


def test_the_newest_conversion_of_each_format_is_kept(run, converted, caplog):
    caplog.set_level("INFO", "t2t_repro")
    (run / "ctranslate2" / "notes-int8-1").mkdir(parents=True)
    first = Conversion.plan(run, str(run / "model.ckpt-40"))
    interrupted = first.folder.with_name(f"{first.folder.name}.incomplete")
    interrupted.mkdir()
    others = [Conversion.plan(run, quantization=q) for q in ("int8", "int8_float32")]
    second = Conversion.plan(run)
    for plan in (first, *others, second, second):
        plan.make()
    kept = {path.name for path in (run / "ctranslate2").iterdir() if path.is_dir()}
    assert kept == {
        "notes-int8-1",
        *(plan.folder.name for plan in (*others, second)),
    }
    assert f"removing the older conversion {first.folder}" in caplog.messages


def test_a_folder_that_cannot_be_written_is_one_line_with_a_way_out(run, converted):
    (run / "ctranslate2").write_text("a file")
    with pytest.raises(UserError, match=r"cannot write .*--export_dir DIR` uses it"):
        Conversion.plan(run).make()


def test_a_model_that_cannot_be_computed_is_refused_before_anything_else(run):
    hparams = catalogue.hparams("transformer_tiny").parse("branched_attention=split")
    make_run(hparams=hparams, problem="algorithmic_reverse").save(run)
    with pytest.raises(UserError, match="branched_attention=split"):
        Conversion.plan(run)
    with pytest.raises(UsageError, match="quantization='int4'"):
        Conversion.plan(run, quantization="int4")
    tiny = catalogue.hparams("transformer_tiny").resolved()
    with pytest.raises(UserError, match="which exists"):
        check_exportable("transformer", tiny, run, "float32")


def test_a_search_that_the_engine_does_not_follow_is_refused_before_converting(run):
    with pytest.raises(UsageError, match="coverage_penalty not supported"):
        Conversion.plan(run, decode_hparams=HPARAMS.replace(coverage_penalty=0.2))


def test_an_export_is_read_as_it_was_written(tmp_path):
    folder = write_export(tmp_path / "export")
    found = ExportDescription.load(folder)
    assert dataclasses.replace(found, files={}) == description()
    assert sorted(found.files) == ["inputs.symbols", "targets.symbols"]


def test_a_folder_without_an_export_or_a_damaged_one_is_refused(tmp_path):
    with pytest.raises(UserError, match="`t2t export --format ctranslate2` writes one"):
        ExportDescription.load(tmp_path)
    (tmp_path / DESCRIPTION_FILE).write_text("{}")
    with pytest.raises(UserError, match=r"is damaged .*export the system again"):
        CTranslate2System(tmp_path)


def test_a_digest_needs_a_checkpoint(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*model.index"):
        checkpoint_digest(str(tmp_path / "model"))


def test_without_dev_text_sentences_of_the_grammar_are_compared(tmp_path):
    problem = catalogue.problem("text_pairs")
    sentences = comparison_sentences(str(tmp_path), problem)
    assert len(set(sentences)) > 0.9 * COMPARED_SENTENCES
    assert all(sentence.isascii() for sentence in sentences)


def test_the_longest_translation_decides_the_positions():
    assert ctranslate2_translator.needed_positions(48, 7) == 55
    # A piece is at least as long as the shortest bucket.
    assert ctranslate2_translator.needed_positions(3, 7) == 15
    assert position_count(48, 7) == 1024
    assert position_count(48, 2_000) == 2_048
