"""Every flag reaches the trained system; all values differ."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import runs
from t2t_repro.cli.main import main
from t2t_repro.data.prepared import PreparedData
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.recorder import Recorder, record


def loaded_call(stage):
    return {
        "output_dir": stage.run,
        "checkpoint": "best",
        "t2t_usr_dir": stage.package,
    }


def decode(stage, *more, hparams="beam_size=3,alpha=0.9"):
    source = stage.file("source", "a", "b", "c")
    flags = ["--decode_from_file", source, "--decode_hparams", hparams]
    return main(["decode", *stage.flags, *flags, *more])


def test_decode_loads_the_named_system(stage):
    assert decode(stage) == 0
    assert stage.loaded.call == loaded_call(stage)


def test_decode_writes_the_best_translation_of_each_line(stage, capsys):
    decode(stage)
    assert capsys.readouterr().out.splitlines() == ["best a", "best b", "best c"]
    ((_, hparams, _),) = stage.system.calls
    assert hparams == DecodeHParams(beam_size=3, alpha=0.9)


def test_decode_writes_to_the_named_file(stage, capsys):
    target = stage.folder / "target"
    decode(stage, "--decode_to_file", str(target))
    assert target.read_text() == "best a\nbest b\nbest c\n"
    assert capsys.readouterr().out == ""


def test_decode_forces_the_lines_of_a_file(stage):
    prefixes = stage.file("prefixes", "x", "", "z")
    decode(stage, "--target_prefix", prefixes)
    assert stage.system.prefixes == ["x", "", "z"]


def test_decode_forces_nothing_by_default(stage):
    decode(stage)
    assert stage.system.prefixes is None


def test_decode_wants_a_prefix_per_line(stage, capsys):
    assert decode(stage, "--target_prefix", stage.file("prefixes", "x")) == 1
    errors = capsys.readouterr().err
    assert "received 3 lines to translate and 1 lines of --target_prefix" in errors
    assert stage.system.calls == []


@pytest.mark.parametrize("command", ["decode", "evaluate"])
def test_checkpoints_with_commas_are_an_ensemble(stage, splits, monkeypatch, command):
    loaded = record(monkeypatch, runs, "load_ensemble", stage.system)
    names = f"best,{stage.run}/model.ckpt-40"
    source = stage.file("source", "a")
    more = ["--decode_from_file", source] if command == "decode" else []
    assert main([command, *stage.flags, "--checkpoint_path", names, *more]) == 0
    assert loaded.call == {
        "output_dir": stage.run,
        "checkpoints": ["best", f"{stage.run}/model.ckpt-40"],
        "t2t_usr_dir": stage.package,
    }
    assert stage.loaded.calls == []


def test_a_missing_checkpoint_of_an_ensemble_is_reported(stage, capsys):
    assert decode(stage, "--checkpoint_path", "best,none") == 1
    assert "received checkpoint path none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hparams", "line"),
    [
        ("return_beams=true", "best a\tsecond a"),
        ("write_beam_scores=true", "best a\t-1.5000\tsecond a\t-2.5000"),
        (
            "return_beams=true,write_beam_scores=true",
            "best a\t-1.5000\tsecond a\t-2.5000",
        ),
    ],
)
def test_decode_writes_columns_on_request(stage, capsys, hparams, line):
    decode(stage, hparams=hparams)
    assert capsys.readouterr().out.splitlines()[0] == line


def test_decode_reports_repairs_of_the_best_translations(stage, capsys):
    stage.system.repaired = ("a", "c")
    decode(stage)
    assert "repaired 2 of 3: 2 x cut\n" in capsys.readouterr().err


def test_decode_is_silent_without_repairs(stage, capsys):
    decode(stage)
    assert "repaired" not in capsys.readouterr().err


def test_decode_shows_its_progress(stage, monkeypatch):
    from t2t_repro.cli import decode as module

    shown = record(monkeypatch, module, "Progress", FakeProgress)
    decode(stage)
    assert (shown.call["total"], shown.call["unit"]) == (3, "sentence")
    ((_, _, advance),) = stage.system.calls
    assert advance.__self__.done == 3


class FakeProgress:
    """Progress that counts."""

    def __init__(self, *_):
        self.done = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def advance(self, count=1):
        self.done += count


def evaluate(stage, *more):
    hparams = ["--decode_hparams", "beam_size=3,alpha=0.9"]
    return main(["evaluate", *stage.flags, *hparams, *more])


def printed(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def splits(monkeypatch):
    """Put a text in place of prepared data, and record where it is read."""

    def raw_text(split):
        return [f"{split} source"], [f"{split} reference"]

    prepared = SimpleNamespace(raw_text=raw_text, splits=("train", "dev", "test"))
    monkeypatch.setattr(
        PreparedData, "load", Recorder(PreparedData.load, prepared), raising=True
    )
    return PreparedData.load


def test_evaluate_loads_the_named_system(stage, splits):
    assert evaluate(stage) == 0
    assert stage.loaded.call == loaded_call(stage)


@pytest.mark.parametrize(
    ("flags", "split"), [([], "test"), (["--split", "dev"], "dev")]
)
def test_evaluate_scores_the_split_of_the_runs_data(
    stage, splits, capsys, flags, split
):
    evaluate(stage, *flags)
    assert splits.call == {
        "folder": str(stage.folder / "data"),
        "problem": stage.system.problem,
    }
    report = printed(capsys)
    assert report["hypotheses"] == [f"best {split} source"]
    assert report["references"] == [f"{split} reference"]
    assert report["data"] == split


def test_evaluate_reads_the_given_data(stage, splits):
    evaluate(stage, "--data_dir", "elsewhere")
    assert splits.call["folder"] == "elsewhere"


def test_evaluate_searches_as_asked_completed_by_the_problem(stage, splits, capsys):
    evaluate(stage)
    *_, hparams, _ = stage.system.calls[-1]
    expected = DecodeHParams(beam_size=3, alpha=0.9, extra_length=17)
    assert hparams.values() == expected.values()
    assert printed(capsys)["decode_hparams"] == {
        "beam_size": 3,
        "alpha": 0.9,
        "extra_length": 17,
        "batch_size": 2048,
        "prefer_unrepaired": False,
        "min_length": 0,
        "no_repeat_ngram_size": 0,
        "coverage_penalty": 0.0,
        "sampling_method": "argmax",
        "sampling_temp": 1.0,
        "sampling_keep_top_k": -1,
        "sampling_keep_top_p": 1.0,
        "sampling_seed": 0,
    }


def test_evaluate_names_problem_and_checkpoint(stage, splits, capsys):
    evaluate(stage)
    report = printed(capsys)
    assert report["problem"] == "algorithmic_reverse"
    assert report["checkpoint"] == "path of the checkpoint"


@pytest.mark.parametrize(
    ("flags", "mode", "seed"),
    [
        ([], "learned", 1),
        (["--branch_weights", "random", "--branch_seed", "17"], "random", 17),
        (["--branch_weights", "uniform"], "uniform", 1),
    ],
)
def test_evaluate_replaces_branch_weights_before_it_translates(
    stage, splits, capsys, flags, mode, seed
):
    evaluate(stage, *flags)
    assert stage.system.calls[0] == ("branch weights", mode, seed)
    assert stage.system.calls[1][0] == "evaluate"
    report = printed(capsys)
    assert report.get("branch_weights", "learned") == mode
    assert ("branch_weights" in report) == (mode != "learned")


def test_evaluate_scores_files_instead_of_a_split(stage, splits, capsys):
    source, reference = stage.file("s", "a", "b"), stage.file("r", "x", "y")
    evaluate(stage, "--source", source, "--reference", reference)
    report = printed(capsys)
    assert report["hypotheses"] == ["best a", "best b"]
    assert report["references"] == ["x", "y"]
    assert report["data"] == source
    assert splits.calls == []


def test_evaluate_needs_one_reference_per_source(stage, capsys):
    source, reference = stage.file("s", "a", "b"), stage.file("r", "x")
    assert evaluate(stage, "--source", source, "--reference", reference) == 1
    assert "received 2 lines to translate and 1 references" in capsys.readouterr().err
    assert stage.loaded.calls == []


@pytest.mark.parametrize("command", ["decode", "evaluate", "export", "average"])
def test_a_folder_without_a_run_is_answered_before_tensorflow_is_imported(
    stage, monkeypatch, capsys, command
):
    imported = []
    for module in (f"t2t_repro.cli.{command}", "t2t_repro.cli.framework"):
        monkeypatch.setattr(
            f"{module}.import_tensorflow", lambda: imported.append(1), raising=False
        )
    flags = {"decode": ["--decode_from_file", stage.file("source", "a")]}
    flags |= {"export": ["--export_dir", "export"]}
    arguments = [command, "--output_dir", "nowhere", *flags.get(command, [])]
    assert main(arguments) == 1
    assert "expected the folder of a run" in capsys.readouterr().err
    assert imported == []


def test_evaluate_writes_the_translations_on_request(stage, splits):
    target = stage.folder / "target"
    evaluate(stage, "--decode_to_file", str(target))
    assert target.read_text() == "best test source\n"


@pytest.mark.parametrize("repaired", [(), ("cut", "closed")])
def test_evaluate_reports_repairs_if_there_are_any(stage, splits, capsys, repaired):
    stage.system.repaired = repaired
    evaluate(stage)
    report = printed(capsys)
    expected = {"repaired": 2, "repairs": {"cut": 5, "closed": 5}} if repaired else {}
    assert {n: report[n] for n in ("repaired", "repairs") if n in report} == expected


def test_evaluate_shows_its_progress(stage, splits, monkeypatch):
    from t2t_repro.cli import evaluate as module

    shown = record(monkeypatch, module, "Progress", FakeProgress)
    evaluate(stage)
    assert (shown.call["total"], shown.call["unit"]) == (1, "sentence")
    assert isinstance(stage.system.calls[-1][-1].__self__, FakeProgress)


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (["--source", "a"], "--source and --reference go together"),
        (["--reference", "a"], "--source and --reference go together"),
        (["--source", "a", "--reference", "b", "--split", "dev"], "not both"),
        (["--decode_to_file", "-"], "expected a file"),
    ],
)
def test_evaluate_refuses_flags_that_contradict_each_other(
    stage, capsys, flags, answer
):
    assert evaluate(stage, *flags) == 2
    assert answer in capsys.readouterr().err
    assert stage.loaded.calls == []


def test_evaluate_refuses_a_file_that_cannot_be_written(stage, capsys):
    assert evaluate(stage, "--decode_to_file", "nowhere/file") == 1
    assert "--decode_to_file nowhere/file" in capsys.readouterr().err


def test_export_writes_the_named_system_with_its_search(stage, capsys):
    folder = str(stage.folder / "export")
    hparams = ["--decode_hparams", "beam_size=3,alpha=0.9"]
    assert main(["export", *stage.flags, *hparams, "--export_dir", folder]) == 0
    assert stage.loaded.call == loaded_call(stage)
    expected = DecodeHParams(beam_size=3, alpha=0.9)
    assert stage.system.calls == [("export", folder, expected)]
    assert capsys.readouterr().out.splitlines()[0] == folder


@pytest.fixture
def averaged(monkeypatch):
    recorder = Recorder(runs.average, "path of the average")
    monkeypatch.setattr(runs, "average", recorder)
    return recorder


def test_average_has_its_flags(stage, averaged, capsys):
    flags = ["--last", "2", "--t2t_usr_dir", stage.package]
    assert main(["average", "--output_dir", stage.run, *flags]) == 0
    assert averaged.call == {
        "output_dir": stage.run,
        "last": 2,
        "t2t_usr_dir": stage.package,
    }
    assert capsys.readouterr().out == "path of the average\n"


def test_average_takes_five_checkpoints_by_default(stage, averaged):
    for step in (10, 20, 30, 50):
        (Path(stage.run) / f"model.ckpt-{step}.index").touch()
    assert main(["average", "--output_dir", stage.run]) == 0
    assert (averaged.call["last"], averaged.call["t2t_usr_dir"]) == (5, None)


def test_the_package_of_the_user_is_loaded_to_list_and_to_show(stage, capsys):
    for command in (["list"], ["list", "models"], ["show", "transformer_tiny"]):
        stage.catalogue.calls.clear()
        assert main([*command, "--t2t_usr_dir", stage.package]) == 0
        assert stage.catalogue.calls == [{"usr_dir": stage.package}]


def test_compare_has_its_flags(stage, monkeypatch, capsys):
    from t2t_repro.cli import compare as module

    @dataclasses.dataclass
    class Found:
        name: str

    compared = record(monkeypatch, module, "compare_translations", [Found("b")])
    a, b, reference = (
        stage.file(name, f"line of {name}") for name in ("a", "b", "reference")
    )
    flags = ["--reference", reference, "--test", "randomization", "--samples", "17"]
    choices = [name for name in module.TESTS if name != "bootstrap"]
    flags[3] = choices[0]
    assert main(["compare", a, b, *flags]) == 0
    assert [*compared.call.values()] == [
        {a: ["line of a"], b: ["line of b"]},
        ["line of reference"],
        choices[0],
        17,
    ]
    assert json.loads(capsys.readouterr().out) == [{"name": "b"}]
    assert main(["compare", a, b, "--reference", reference]) == 0
    assert [*compared.calls[-1].values()][2:] == ["bootstrap", 0]


def test_commands_leave_the_log_as_it_was(stage, averaged):
    logger = logging.getLogger("t2t_repro")
    before = logger.level, logger.propagate, [*logger.handlers]
    main(["average", "--output_dir", stage.run, "--last", "1"])
    assert (logger.level, logger.propagate, [*logger.handlers]) == before
