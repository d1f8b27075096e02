from __future__ import annotations

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.models.estimates import parameter_count
from t2t_repro.runs import System, average
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.runs.run_checkpoints import check_fits
from t2t_repro.training.checkpoints import write_checkpoint
from tests.runs.test_run import DIGITS, LETTERS, make_run

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
def folder(tmp_path):
    """Return a run whose description asks for 900 layers and whose checkpoint has 4."""
    make_run(hparams=TINY.replace(num_encoder_layers=900)).save(tmp_path)
    DIGITS.save(tmp_path / "shared.symbols")
    write_sized(tmp_path, parameter_count(TINY, *SIZES))
    return tmp_path


@pytest.mark.parametrize("use", [System.load, lambda folder: average(folder, 1)])
def test_a_description_of_a_huge_model_is_refused_before_it_is_built(
    folder, build, use
):
    with pytest.raises(UserError) as refused:
        use(folder)
    message = str(refused.value)
    assert str(folder / RUN_FILE) in message
    assert str(folder / "model.ckpt-7") in message
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
