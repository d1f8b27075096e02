"""Runs and checkpoints of an ensemble."""

from __future__ import annotations

import json

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.features.ensembles.ensemble_model import Ensemble
from t2t_repro.features.ensembles.members import (
    EnsembleFolder,
    Member,
    find_members,
    member_folders,
)
from t2t_repro.runs import Run, System, load_ensemble
from tests.runs.test_run import DIGITS, LETTERS, make_run
from tests.support.recorder import Recorder
from tests.support.tiny_model import tiny_transformer


def save_run(folder, tokenizer=DIGITS):
    folder.mkdir()
    (folder / "averaged").mkdir()
    tokenizer.save(folder / "shared.symbols")
    for name in ("model.ckpt-40", "model.ckpt-60", "averaged/model.ckpt-60"):
        (folder / f"{name}.index").touch()
    make_run(problem="algorithmic_reverse").save(folder)
    return folder


@pytest.fixture
def runs(tmp_path):
    return [save_run(tmp_path / "a"), save_run(tmp_path / "b")]


def test_members_are_words_paths_and_folders_wherever_the_user_is(runs, monkeypatch):
    first, second = runs
    monkeypatch.chdir(second)
    given = [
        "averaged",
        f"{first}/model.ckpt-40",
        str(second),
        f"{second}/model.ckpt-60",
        f"{second}/averaged/model.ckpt-60",
    ]
    assert find_members(first, given) == [
        Member(first, given[0]),
        Member(first, given[1]),
        Member(second, None),
        Member(second, given[3]),
        Member(second, given[4]),
    ]


def test_a_checkpoint_outside_any_run_belongs_to_the_given_run(runs, tmp_path):
    (tmp_path / "model.ckpt-7.index").touch()
    path = str(tmp_path / "model.ckpt-7")
    assert find_members(runs[0], ["latest", path])[1] == Member(runs[0], path)


def test_missing_checkpoints_are_reported(runs):
    with pytest.raises(UserError, match="received no checkpoints"):
        find_members(runs[0], [])
    with pytest.raises(UserError, match="no best checkpoint"):
        find_members(runs[0], ["latest", "best"])
    for path in ("elsewhere", ""):
        with pytest.raises(UserError, match=f"received checkpoint path '{path}'"):
            find_members(runs[0], ["latest", path])


def test_runs_with_other_vocabularies_are_refused(runs, tmp_path):
    other = save_run(tmp_path / "other", LETTERS)
    with pytest.raises(UserError) as error:
        find_members(runs[0], ["latest", str(runs[1]), str(other)])
    assert f"received {runs[0]} and {other}, whose vocabularies differ" in str(
        error.value
    )


@pytest.fixture
def loaded(monkeypatch):
    """Load systems with tiny models in place of trained ones."""
    models = iter([tiny_transformer(1), tiny_transformer(2)])

    def load(output_dir, checkpoint=None, t2t_usr_dir=None):
        longest = 50 if output_dir.name == "a" else 40
        hparams = catalogue.hparams("transformer_tiny").replace(max_length=longest)
        return System(
            make_run(problem="algorithmic_reverse", hparams=hparams),
            catalogue.problem("algorithmic_reverse"),
            next(models),
            (DIGITS, LETTERS),
            f"{checkpoint} of {output_dir.name}",
        )

    recorder = Recorder(System.load, load)
    monkeypatch.setattr(System, "load", recorder)
    return recorder


def test_an_ensemble_is_a_system_of_several_models(runs, loaded):
    first, second = runs
    system = load_ensemble(first, ["averaged", str(second)], "package")
    assert [call["output_dir"] for call in loaded.calls] == [first, second]
    assert [call["checkpoint"] for call in loaded.calls] == ["averaged", None]
    assert {call["t2t_usr_dir"] for call in loaded.calls} == {"package"}
    assert isinstance(system.model, Ensemble)
    assert len(system.model.members) == 2
    assert system.problem.name == "algorithmic_reverse"
    assert (system.source_tokenizer, system.target_tokenizer) == (DIGITS, LETTERS)
    assert system.checkpoint == "averaged of a,None of b"
    # The longest source is one that all models read.
    assert system.run.hparams.max_length == 40


def test_what_needs_one_model_refuses_an_ensemble(runs, loaded, tmp_path):
    system = load_ensemble(runs[0], ["averaged", str(runs[1])])
    with pytest.raises(UserError, match="ensemble of 2 models, expected one model"):
        system.export_ctranslate2(tmp_path / "export")
    with pytest.raises(UserError, match="attention shows one model"):
        system.attention("1 2")


@pytest.fixture
def ensemble(tmp_path):
    EnsembleFolder(members=2).save(tmp_path)
    for folder in member_folders(tmp_path):
        save_run(folder)
    return tmp_path


@pytest.mark.parametrize("members", [1, "2", None, True, 101])
def test_a_wrong_number_of_members_is_refused(tmp_path, members):
    text = json.dumps({"members": members, "format": 1})
    (tmp_path / "ensemble.json").write_text(text)
    with pytest.raises(UserError, match=f"received {members!r} members, expected a"):
        member_folders(tmp_path)


def test_the_members_are_those_of_the_folder(ensemble):
    first, second = member_folders(ensemble)
    assert [folder.name for folder in (first, second)] == ["member-1", "member-2"]
    assert find_members(ensemble) == [Member(first, None), Member(second, None)]
    members = find_members(ensemble, ["averaged"])
    assert [member.checkpoint for member in members] == ["averaged", "averaged"]
    with pytest.raises(UserError, match="no best checkpoint"):
        find_members(ensemble, ["best"])


@pytest.mark.parametrize("given", [["latest", "averaged"], ["member-1"], [""]])
def test_anything_else_than_one_word_is_refused(ensemble, given):
    with pytest.raises(UserError, match="expected one of latest, best, averaged for"):
        find_members(ensemble, given)


def test_one_run_is_not_read_from_the_folder_of_an_ensemble(ensemble):
    expected = f"the folder of an ensemble, .* such as {ensemble / 'member-1'}"
    with pytest.raises(UserError, match=expected):
        Run.load_existing(ensemble)
    with pytest.raises(UserError, match=expected):
        System.load(ensemble)
