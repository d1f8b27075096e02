"""The run whose settings complete the flags of `t2t train`."""

from __future__ import annotations

import argparse
import dataclasses

import pytest

from t2t_repro.cli import train
from t2t_repro.errors import UsageError
from t2t_repro.features.ensembles.ensemble_training import member_settings
from t2t_repro.features.ensembles.members import EnsembleFolder, member_folders
from t2t_repro.runs.run import Run
from tests.features.ensembles.test_members import save_run


@pytest.fixture
def ensemble(tmp_path):
    """Return the folder of an ensemble, whose members have the seeds 5 and 6."""
    (tmp_path / "data").mkdir()
    folder = tmp_path / "ensemble"
    folder.mkdir()
    EnsembleFolder(2).save(folder)
    for number, member in enumerate(member_folders(folder)):
        save_run(member)
        run = dataclasses.replace(
            Run.load_existing(member),
            random_seed=5 + number,
            data_dir=str(tmp_path / "data"),
            training={"train_steps": 70},
        )
        run.save(member)
    return folder


def request(*flags):
    parser = argparse.ArgumentParser()
    train.add_flags(parser)
    return train.requested_training(parser.parse_args([str(flag) for flag in flags]))


def test_the_folder_of_an_ensemble_is_enough_to_resume_it(ensemble):
    found = request("--output_dir", ensemble)
    settings = found.settings
    assert found.problem.name == "algorithmic_reverse"
    assert found.data_dir == ensemble.parent / "data"
    assert settings.output_dir == str(ensemble)
    assert (settings.random_seed, settings.train_steps) == (5, 70)
    seeds = [member.random_seed for member in member_settings(settings, 2)]
    assert seeds == [5, 6]


def test_given_settings_are_those_of_all_members(ensemble):
    settings = request(
        *("--output_dir", ensemble, "--train_steps", 90, "--random_seed", 8)
    ).settings
    assert (settings.random_seed, settings.train_steps) == (8, 90)


def test_the_first_member_may_have_ended_before_it_was_described(ensemble):
    (ensemble / "member-1" / "hparams.json").unlink()
    settings = request("--output_dir", ensemble).settings
    assert settings.output_dir == str(ensemble)
    assert settings.random_seed == 5


def test_members_without_a_description_cannot_be_resumed(ensemble):
    for member in member_folders(ensemble):
        (member / "hparams.json").unlink()
        assert Run.load(member) is None
    with pytest.raises(UsageError, match="ensemble has no run to resume"):
        request("--output_dir", ensemble)
