"""Which checkpoints are averaged, and whether a checkpoint fits its run."""

from __future__ import annotations

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.models.estimates import parameter_count
from t2t_repro.runs import System, average, run_checkpoints
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.runs.run_checkpoints import check_fits
from t2t_repro.training.checkpoints import write_checkpoint
from tests.runs.test_run import DIGITS, LETTERS, make_run
from tests.support.recorder import record


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a run with checkpoints of the steps 7, 30 and 200."""
    make_run().save(tmp_path)
    for step in (200, 30, 7):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    return tmp_path


@pytest.fixture
def averaged(monkeypatch):
    return record(monkeypatch, run_checkpoints, "average_paths", "result")


def test_an_average_older_than_the_latest_must_be_named(folder, averaged, caplog):
    best = folder / "best_models"
    best.mkdir()
    (best / "scores.json").write_text('{"30": 9.0, "200": 5.0}')
    for step in (30, 200):
        (best / f"model.ckpt-{step}.index").touch()
    run_checkpoints.average(folder, best=2)
    assert caplog.messages == []
    run_checkpoints.average(folder, best=1)
    (message,) = caplog.messages
    assert "ends at step 30" in message
    assert "checkpoint_path=averaged" in message


@pytest.mark.parametrize(
    ("averaged", "which", "expected"),
    [
        (61, None, "averaged/model.ckpt-61"),
        (60, None, "averaged/model.ckpt-60"),
        (59, None, "model.ckpt-60"),
        (None, None, "model.ckpt-60"),
        (60, "best", "best/model.ckpt-20"),
    ],
)
def test_an_average_is_the_default_if_new(tmp_path, caplog, averaged, which, expected):
    caplog.set_level("INFO", "t2t_repro")
    for folder, step in (("", 60), ("best", 20), ("averaged", averaged)):
        (tmp_path / folder).mkdir(exist_ok=True)
        if step is not None:
            (tmp_path / folder / f"model.ckpt-{step}.index").touch()
    found = run_checkpoints.choose_checkpoint(tmp_path, which)
    assert found == str(tmp_path / expected)
    # A named checkpoint needs no message.
    assert caplog.messages == ([] if which else [f"using checkpoint {found}"])


TINY = catalogue.hparams("transformer_tiny")
SIZES = (DIGITS.vocab_size, DIGITS.vocab_size)


def write_sized(folder, parameters):
    """Write a checkpoint of a model with a number of parameters."""
    variables = {
        "model": {"weights": tf.Variable(tf.zeros([parameters]))},
        "optimizer": {"moments": tf.Variable(tf.zeros([10 * parameters]))},
    }
    return write_checkpoint(variables, folder, 7)


@pytest.fixture
def build(monkeypatch):
    """Fail if a model is built."""
    monkeypatch.setattr(
        Run, "build_model", lambda *_: pytest.fail("the model must not be built")
    )


@pytest.fixture
def huge(tmp_path):
    """Return a run whose description asks for 900 layers and whose checkpoint has 4."""
    make_run(hparams=TINY.replace(num_encoder_layers=900)).save(tmp_path)
    DIGITS.save(tmp_path / "shared.symbols")
    write_sized(tmp_path, parameter_count(TINY, *SIZES))
    return tmp_path


@pytest.mark.parametrize("use", [System.load, lambda folder: average(folder, 1)])
def test_a_description_of_a_huge_model_is_refused_before_it_is_built(huge, build, use):
    with pytest.raises(UserError) as refused:
        use(huge)
    message = str(refused.value)
    assert str(huge / RUN_FILE) in message
    assert str(huge / "model.ckpt-7") in message
    assert "900 + 2 layers of width 128" in message


def test_a_checkpoint_of_the_described_model_fits(tmp_path):
    path = write_sized(tmp_path, parameter_count(TINY, *SIZES))
    check_fits(make_run(hparams=TINY), tmp_path, (DIGITS, DIGITS), path)


def test_two_vocabularies_have_three_matrices(tmp_path):
    untied = TINY.replace(shared_embedding_and_softmax_weights=False)
    path = write_sized(tmp_path, parameter_count(untied, *SIZES) // 2 - 1)
    with pytest.raises(UserError, match=f"{parameter_count(untied, *SIZES):,}"):
        check_fits(make_run(hparams=TINY), tmp_path, (DIGITS, LETTERS), path)


def test_the_size_of_another_model_class_is_not_known(tmp_path):
    path = write_sized(tmp_path, 1)
    run = make_run(hparams=TINY, model="of_a_package")
    check_fits(run, tmp_path, (DIGITS, DIGITS), path)
