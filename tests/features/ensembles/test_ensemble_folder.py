"""The description of an ensemble, and the folders of its members."""

from __future__ import annotations

import json

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.ensembles.members import (
    EnsembleFolder,
    Member,
    find_members,
    member_folders,
)
from t2t_repro.runs import Run, System, load_ensemble
from tests.features.ensembles.test_members import save_run


@pytest.fixture
def ensemble(tmp_path):
    """Return the folder of an ensemble with two complete members."""
    EnsembleFolder(members=2).save(tmp_path)
    for folder in member_folders(tmp_path):
        save_run(folder)
    return tmp_path


def test_the_description_is_read_as_it_was_written(tmp_path):
    EnsembleFolder(members=3).save(tmp_path)
    assert EnsembleFolder.load(tmp_path) == EnsembleFolder(members=3)
    names = [folder.name for folder in member_folders(tmp_path)]
    assert names == ["member-1", "member-2", "member-3"]


def test_a_folder_without_a_description_has_no_members(tmp_path):
    assert EnsembleFolder.load(tmp_path) is None
    assert member_folders(tmp_path) == []


@pytest.mark.parametrize("members", [1, 0, "2", None, 2.0, True, 101, 10**9])
def test_a_wrong_number_of_members_is_refused(tmp_path, members):
    text = json.dumps({"members": members, "format": 1})
    (tmp_path / "ensemble.json").write_text(text)
    with pytest.raises(UserError, match=f"received {members!r} members, expected a"):
        member_folders(tmp_path)


def test_the_members_are_those_of_the_folder(ensemble):
    first, second = member_folders(ensemble)
    assert find_members(ensemble) == [Member(first, None), Member(second, None)]


def test_one_word_names_a_checkpoint_of_every_member(ensemble):
    members = find_members(ensemble, ["averaged"])
    assert [member.checkpoint for member in members] == ["averaged", "averaged"]


@pytest.mark.parametrize("given", [["latest", "averaged"], ["member-1"], [""]])
def test_anything_else_than_one_word_is_refused(ensemble, given):
    with pytest.raises(UserError, match="expected one of latest, best, averaged for"):
        find_members(ensemble, given)


def test_a_member_without_the_checkpoint_is_reported(ensemble):
    with pytest.raises(UserError, match="no best checkpoint"):
        find_members(ensemble, ["best"])


def test_loading_an_ensemble_loads_each_member(ensemble, monkeypatch):
    loaded = []

    def load(output_dir, checkpoint, t2t_usr_dir):
        loaded.append((output_dir, checkpoint))
        raise UserError("no weights")

    monkeypatch.setattr(System, "load", load)
    with pytest.raises(UserError, match="no weights"):
        load_ensemble(ensemble)
    assert loaded == [(ensemble / "member-1", None)]


def test_one_run_is_not_read_from_the_folder_of_an_ensemble(ensemble):
    expected = f"the folder of an ensemble, .* such as {ensemble / 'member-1'}"
    with pytest.raises(UserError, match=expected):
        Run.load_existing(ensemble)
    with pytest.raises(UserError, match=expected):
        System.load(ensemble)
