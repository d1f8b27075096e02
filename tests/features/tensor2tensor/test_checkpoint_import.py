"""Models that the real tensor2tensor trained compute the same here.

`tests/golden/make_tensor2tensor.py` made them and what they compute.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.features.tensor2tensor.checkpoint_import import import_checkpoint
from t2t_repro.features.tensor2tensor.variable_names import weight_sources
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.training.losses import token_losses
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.step import StepOptions, make_train_step
from t2t_repro.training.training_state import TrainingCheckpoints
from tests.support.old_models import (
    NAMES,
    NO_DROPOUT,
    STEP,
    copied,
    expected,
    request,
)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Return the system and the report of each model."""
    found = {}
    for name in NAMES:
        folder = tmp_path_factory.mktemp(name)
        asked = request(copied(name, folder / "model"))
        found[name] = import_checkpoint(asked, folder / "run")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_losses_are_tensor2tensors(imported, name):
    texts, arrays = expected(name)
    batch = {side: arrays[side] for side in ("inputs", "targets")}
    logits = imported[name][0].model(batch)
    difference = np.abs(logits - arrays["logits"])[arrays["targets"] > 0]
    assert difference.max() < 1e-5
    _, nll = token_losses(batch["targets"], logits, 0.0)
    mean = float(tf.reduce_sum(nll)) / np.count_nonzero(batch["targets"])
    assert mean == pytest.approx(texts["loss"], rel=1e-5)


@pytest.mark.parametrize(("search", "beam_size"), [("greedy", 1), ("beam", 4)])
@pytest.mark.parametrize("name", NAMES)
def test_translations_are_tensor2tensors(imported, name, search, beam_size):
    texts, _ = expected(name)
    hparams = DecodeHParams(beam_size=beam_size, alpha=0.6, extra_length=50)
    found = imported[name][0].translate(texts["sources"], hparams)
    assert found == texts[search]


@pytest.mark.parametrize("name", NAMES)
def test_the_report_says_where_everything_comes_from(imported, name):
    report = imported[name][1]
    text = "\n".join(report.lines())
    assert 0 < report.comparison.largest < 1e-5
    assert "16 pairs of the dev data" in text
    assert ("vocab.translate_golden_two" in text) == (name == "separate")
    assert "hparams.json" in text
    assert "row 0 of 32" in text
    has_adam = name in ("v3", "separate")
    assert ("Adam's moments of step 3,000" in text) == has_adam
    assert ("train_stats/problem_0_steps" in text) == has_adam


@pytest.mark.parametrize("name", ["v3", "separate"])
def test_the_next_updates_are_tensor2tensors(tmp_path, name):
    """Also for a matrix that only a lookup reads: its gradient is dense there."""
    asked = request(copied(name, tmp_path / "model"), hparams=NO_DROPOUT)
    system, report = import_checkpoint(asked, tmp_path / "run")
    model, run = system.model, Run.load_existing(tmp_path / "run")
    optimizer = make_optimizer(run.hparams)
    optimizer.build(model.trainable_variables)
    settings = run.train_settings(tmp_path / "run")
    TrainingCheckpoints(settings, model, optimizer).restore_latest()
    assert int(optimizer.iterations.numpy()) == STEP
    smoothing = run.hparams.label_smoothing
    step = make_train_step(
        model, optimizer, tf.distribute.get_strategy(), StepOptions(smoothing)
    )
    texts, arrays = expected(name)
    vocab_size = system.target_tokenizer.vocab_size
    low = smoothing / (vocab_size - 1)
    # tensor2tensor subtracts the smallest cross-entropy that can be reached.
    least = -(1 - smoothing) * np.log(1 - smoothing) - smoothing * np.log(low)
    losses = []
    for number in range(len(texts["update_losses"])):
        sides = ("inputs", "targets")
        batch = {s: tf.constant(arrays[f"batch_{number}/{s}"]) for s in sides}
        losses.append(float(step(batch)["loss"]) - least)
    assert losses == pytest.approx(texts["update_losses"], abs=2e-6)
    sources = weight_sources(
        report.checkpoint.shapes, tied=name == "v3", target_space_id=0
    )
    for weight in model.trainable_variables:
        there = sources[weight.path].value(lambda n: arrays[f"updated/{n}"])
        np.testing.assert_allclose(weight.numpy(), there, rtol=0, atol=2e-6)
