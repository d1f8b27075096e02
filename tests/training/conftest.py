from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_repro.training import training_batches
from tests.support.corpus import random_pairs, write_shards
from tests.support.tiny_model import VOCAB_SIZE
from tests.support.tiny_training import (
    LONGEST,
    PAIRS,
    STEPS,
    checkpoints_of,
    fill,
    lent_epoch,
    losses_of,
    take_back,
    tiny_model,
    train,
    weights_of,
)


@pytest.fixture(autouse=True)
def lending(monkeypatch) -> Iterator[None]:
    """Let the next test have the traced steps and datasets of this one."""
    monkeypatch.setattr(training_batches, "training_epoch", lent_epoch)
    yield
    take_back()


@pytest.fixture(scope="session")
def shards(tmp_path_factory):
    pairs = random_pairs(PAIRS, LONGEST, VOCAB_SIZE)
    return write_shards(tmp_path_factory.mktemp("shards"), pairs)


@pytest.fixture(scope="session")
def uninterrupted(shards, tmp_path_factory):
    """Train `STEPS` without a stop, and return the losses and last weights."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    trainer = train(folder, shards, train_steps=STEPS)
    return losses_of(folder), weights_of(trainer.model)


@pytest.fixture
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Write checkpoints of steps 100, 200 and 300, with all weights 1, 2 and 6."""
    folder = tmp_path_factory.mktemp("run")
    model = tiny_model()
    checkpoints = checkpoints_of(model, folder)
    for step, value in ((100, 1.0), (200, 2.0), (300, 6.0)):
        fill(model, value)
        checkpoints.save(step)
    fill(model, 9.0)
    checkpoints.save_best(200, "bleu", 30.5)
    return folder


@pytest.fixture
def own_run(run, tmp_path):
    return Path(shutil.copytree(run, tmp_path / "run"))
