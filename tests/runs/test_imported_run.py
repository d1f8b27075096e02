"""A model that another program trained becomes a run like any other."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from t2t_repro.cli.main import main
from t2t_repro.errors import UserError
from t2t_repro.runs import System
from t2t_repro.runs.imported_run import AdamState, ImportedModel, write_run
from tests.support.eager import train_eagerly
from tests.support.trained_system import HPARAMS, weights_at

SENTENCES = ["one times: the house is red .", "four times: the ship is blue ."]


@pytest.fixture(scope="module")
def system(trained):
    return System.load(trained.output_dir, "latest")


def imported_from(system, **changes):
    weights = {v.path: v.numpy() for v in system.model.weights}
    model = ImportedModel(
        hparams_set="transformer_tiny",
        hparams=HPARAMS,
        tokenizers=(system.source_tokenizer, system.target_tokenizer),
        weights=weights,
    )
    return dataclasses.replace(model, **changes)


def test_it_translates_as_the_model_does(system, tmp_path):
    run = write_run(imported_from(system), tmp_path / "run")
    assert run.translate(SENTENCES) == system.translate(SENTENCES)


def test_its_training_continues_on_any_data_with_its_vocabulary(
    system, trained, tmp_path, monkeypatch
):
    checkpoint = trained.output_dir / f"model.ckpt-{trained.steps}"
    adam = weights_at(checkpoint, "optimizer")
    paths = [variable.path for variable in system.model.trainable_variables]
    means, squares = (
        {p: adam[f"adam/{p.replace('/', '_')}_{kind}"] for p in paths}
        for kind in ("momentum", "velocity")
    )
    state = AdamState(trained.steps, means, squares)
    write_run(imported_from(system, adam=state), tmp_path / "run")
    train_eagerly(monkeypatch)
    folder = str(tmp_path / "run")
    assert main(["train", "--output_dir", folder, "--train_steps", "61"]) == 2
    data = ["--problem", "text_pairs", "--data_dir", str(trained.data_dir)]
    more = ["--train_steps", "61", "--eval_sentences", "0", "--no_final_score"]
    assert main(["train", "--output_dir", folder, *data, *more]) == 0
    here = weights_at(tmp_path / "run" / "model.ckpt-61")
    before = weights_at(checkpoint)
    changes = [np.abs(here[path] - before[path]).max() for path in before]
    assert 0 < max(changes) < 0.1
    recorded = json.loads((tmp_path / "run" / "hparams.json").read_text())
    assert recorded["data_dir"] == str(trained.data_dir)
    # Without other data, the run remembers it.
    assert main(["train", "--output_dir", folder, *more]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.popitem(), "shape none for"),
        (lambda weights: weights.update(new=np.ones(2)), "new, expected none"),
    ],
)
def test_weights_that_do_not_fit_write_nothing(system, tmp_path, change, message):
    imported = imported_from(system)
    change(imported.weights)
    with pytest.raises(UserError, match=message):
        write_run(imported, tmp_path / "run")
    assert [*tmp_path.iterdir()] == []
