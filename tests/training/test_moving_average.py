"""The moving average of the weights is exact, also over a resume."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from t2t_repro import catalogue
from t2t_repro.training.optimizer import (
    averaged_weights,
    make_optimizer,
    moving_averages,
)
from tests.support import tiny_training
from tests.support.tiny_training import train, weights_of

DECAY = 0.75


def averaging_optimizer(model, learning_rate=1e-3):
    optimizer = keras.optimizers.Adam(
        0.05, use_ema=True, ema_momentum=DECAY, name="adam"
    )
    optimizer.build(model.trainable_variables)
    return optimizer


@pytest.fixture(autouse=True)
def with_average(monkeypatch):
    """Give the optimizers of tiny trainers a moving average."""
    monkeypatch.setattr(tiny_training, "tiny_optimizer", averaging_optimizer)


def averages_of(trainer):
    pairs = moving_averages(trainer.model, trainer.optimizer)
    return {weight.path: average.numpy() for weight, average in pairs}


def test_the_average_follows_its_formula(tmp_path, shards):
    history = []
    trainer = tiny_training.tiny_trainer(tmp_path / "run", shards, train_steps=5)
    trainer.log.monitors.append(lambda *_: history.append(weights_of(trainer.model)))
    trainer.train()
    expected = history[0]
    for weights in history[1:]:
        expected = {
            name: DECAY * expected[name] + (1 - DECAY) * weights[name]
            for name in expected
        }
    found = averages_of(trainer)
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-7)


def test_evaluations_and_the_best_model_use_the_average(tmp_path, shards):
    evaluated = []

    def evaluator(step, log):
        evaluated.append(weights_of(evaluator.trainer.model))
        return {"bleu": 1.0}

    trainer = tiny_training.tiny_trainer(
        tmp_path / "run", shards, train_steps=4, evaluators=[evaluator]
    )
    evaluator.trainer = trainer
    trainer.train()
    averages, weights = averages_of(trainer), weights_of(trainer.model)
    assert all((evaluated[-1][n] == averages[n]).all() for n in averages)
    assert any((weights[n] != averages[n]).any() for n in averages)


def test_a_resumed_run_has_the_same_average(tmp_path, shards):
    train(tmp_path / "parts", shards, train_steps=3)
    resumed = train(tmp_path / "parts", shards, train_steps=7)
    straight = train(tmp_path / "straight", shards, train_steps=7)
    left, right = averages_of(resumed), averages_of(straight)
    assert all(left[name].tobytes() == right[name].tobytes() for name in right)


def test_the_weights_come_back_and_constraints_hold():
    weight = keras.Variable([0.0, 2.0], name="kappa", trainable=True)
    weight.constraint = lambda value: value / keras.ops.sum(value)
    layer = keras.layers.Layer()
    layer._track_variable(weight)
    optimizer = keras.optimizers.SGD(0.0, use_ema=True, ema_momentum=0.5)
    optimizer.build([weight])
    ((_, average),) = moving_averages(layer, optimizer)
    average.assign([6.0, 2.0])
    with averaged_weights(layer, optimizer):
        assert weight.numpy().tolist() == [0.75, 0.25]
    assert weight.numpy().tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    "changes",
    [{}, {"branched_attention": "split"}, {"activation_dtype": "float16"}],
    ids=["adam", "two_adams", "loss_scale"],
)
def test_every_optimizer_averages_all_weights_if_asked(changes):
    hparams = catalogue.hparams("transformer_tiny").replace(**changes)
    layer = keras.layers.Layer(name="attention")
    for number, name in enumerate(("kernel", "kappa", "alpha")):
        layer.add_weight(name=name, shape=(2 + number,))
    for decay, count in ((0.0, 0), (0.999, 3)):
        optimizer = make_optimizer(hparams.replace(ema_decay=decay))
        optimizer.build(layer.trainable_variables)
        pairs = moving_averages(layer, optimizer)
        assert len(pairs) == count
        assert all(w.shape == average.shape for w, average in pairs)
