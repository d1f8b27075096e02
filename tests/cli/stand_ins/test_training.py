"""`t2t train` around a training that a stand-in does: errors, order and report."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro.cli.main import main
from t2t_repro.data import prepare as prepare_module
from t2t_repro.features.ensembles import command_ensemble, members
from t2t_repro.features.ensembles.members import EnsembleFolder
from t2t_repro.runs import TrainSettings
from t2t_repro.runs import run_training as training_module
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.cli.stand_ins.conftest import FakeData
from tests.support.recorder import Recorder, record

TRAINING = {
    "hparams_set": "transformer_tiny",
    "hparams": "filter_size=48",
    "random_seed": 11,
    "train_steps": 170,
    "log_step_count_steps": 3,
    "save_checkpoints_steps": 9,
    "average_last": 6,
    "decode_hparams": "beam_size=3,alpha=0.25,batch_size=640",
    "xla": "off",
}


@dataclasses.dataclass
class Training:
    """Calls of a training run, and its outcome."""

    opened: Recorder
    trained: Recorder
    result: SimpleNamespace
    data: FakeData


@pytest.fixture
def training(stage, monkeypatch):
    data = FakeData()
    result = SimpleNamespace(
        output_dir=stage.folder / "new",
        steps=170,
        complete=True,
        averaged="average",
        is_chief=True,
    )
    trained = record(monkeypatch, training_module, "run_training", result)
    opened = record(monkeypatch, prepare_module, "open_or_prepare", data)
    return Training(opened, trained, result, data)


def train(stage, *more):
    flags = [f"--{name}={value}" for name, value in TRAINING.items()]
    data = ["--problem", "algorithmic_reverse", "--t2t_usr_dir", stage.package]
    data += ["--data_dir", str(stage.folder / "other_data")]
    place = ["--output_dir", str(stage.folder / "new")]
    return main(["train", *data, *flags, *place, *more])


def test_the_members_of_a_folder_train_without_the_flag(stage, training, monkeypatch):
    results = [training.result] * 3
    trained = record(monkeypatch, command_ensemble, "train_ensemble", results)
    record(monkeypatch, members, "load_ensemble", stage.system)
    (stage.folder / "new").mkdir()
    EnsembleFolder(3).save(stage.folder / "new")
    assert train(stage) == 0
    assert trained.call["members"] == 3


def test_train_scores_the_average_of_the_test_split(stage, training, capsys):
    train(stage)
    assert stage.reported.call == {
        "output_dir": stage.folder / "new",
        "checkpoint": None,
        "t2t_usr_dir": None,
    }
    ((_, sources, references, hparams, _),) = stage.system.calls
    assert (sources, references) == training.data.raw_text("test")
    expected = DecodeHParams(beam_size=3, alpha=0.25, batch_size=640, extra_length=17)
    assert not hparams.diff(expected)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "scores: test (7 sentences, beam 3, alpha 0.25)"
    # Three samples are spread over the split.
    for number in (0, 2, 4):
        start = lines.index(f"source       test source {number}")
        assert lines[start + 1 : start + 3] == [
            f"translation  best test source {number}",
            f"reference    test reference {number}",
        ]
    new = stage.folder / "new"
    search = "--decode_hparams beam_size=3,alpha=0.25,batch_size=640"
    assert lines[lines.index("Next:") + 1 :] == [
        f"  t2t decode --output_dir {new} {search}",
        f"  t2t evaluate --output_dir {new} {search}",
        f"  t2t export --output_dir {new} {search} --export_dir {new}/export",
        f"  tensorboard --logdir {new}",
    ]


@pytest.mark.parametrize(
    ("splits", "start", "scored"),
    [
        (("train", "dev"), "scores: dev (7 sentences", True),
        (("train",), "trained; no dev or test split to score", False),
    ],
)
def test_train_scores_dev_without_test(stage, training, capsys, splits, start, scored):
    training.data.splits = splits
    train(stage)
    out = capsys.readouterr().out
    assert out.startswith(start)
    assert ("t2t evaluate" in out) == ("--split dev" in out) == scored
    assert len(stage.reported.calls) == scored


@pytest.mark.parametrize(
    ("given", "evaluate", "export"),
    [
        ("", "", ""),
        # An export cannot draw samples.
        ("beam_size=1,sampling_method=random", None, " --decode_hparams beam_size=1"),
    ],
)
def test_next_commands_keep_settings(stage, training, capsys, given, evaluate, export):
    train(stage, f"--decode_hparams={given}")
    out = capsys.readouterr().out
    evaluate = f" --decode_hparams {given}" if evaluate is None else evaluate
    run = stage.folder / "new"
    assert f"  t2t evaluate --output_dir {run}{evaluate}\n" in out
    assert f"  t2t export --output_dir {run}{export} --export_dir" in out


def test_the_next_commands_name_no_folder_that_export_refuses(stage, training, capsys):
    assert train(stage, "--output_dir", str(stage.folder / "new [v1]")) == 0
    assert "--export_dir DIR\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("beem_size=3", "Did you mean beam_size"),
        ("return_beams=true", "`t2t train` does not read it"),
        ("constrain=tree", "algorithmic_reverse has no grammar"),
    ],
)
def test_a_wrong_search_is_refused_at_once(stage, training, capsys, given, answer):
    assert train(stage, f"--decode_hparams={given}") == 2
    assert answer in capsys.readouterr().err
    assert training.opened.calls == []


def test_train_scores_nothing_on_request(stage, training, capsys):
    train(stage, "--no_final_score")
    assert "scores:" not in capsys.readouterr().out
    assert stage.reported.calls == []


def test_a_worker_that_is_not_the_chief_prints_no_report(stage, training, capsys):
    training.result.is_chief = False
    assert train(stage) == 0
    assert capsys.readouterr().out == ""
    assert stage.reported.calls == []


def test_the_demonstration_has_its_own_settings(stage, training, monkeypatch):
    monkeypatch.chdir(stage.folder)
    assert main(["train"]) == 0
    call = training.opened.call
    assert call["problem"].name == "translate_ende_synthetic"
    assert Path(call["data_dir"]) == Path("t2t_demo/data")
    assert training.trained.call["config"].settings == TrainSettings(
        output_dir="t2t_demo/run", hparams_set="transformer_tiny", train_steps=1300
    )


@pytest.mark.parametrize("missing", ["hparams_set", "data_dir", "output_dir"])
def test_a_new_run_needs_set_data_and_folder(stage, training, capsys, missing):
    values = {
        "hparams_set": "transformer_tiny",
        "data_dir": str(stage.folder / "other_data"),
        "output_dir": str(stage.folder / "new"),
    }
    flags = [f"--{name}={value}" for name, value in values.items() if name != missing]
    assert main(["train", "--problem", "algorithmic_sort", *flags]) == 2
    assert f"--{missing} is missing" in capsys.readouterr().err
    assert training.trained.calls == []
