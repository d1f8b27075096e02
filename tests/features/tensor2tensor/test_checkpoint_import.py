"""Models that the real tensor2tensor trained compute the same here.

`tests/golden/make_tensor2tensor.py` made them and what they compute.
"""

from __future__ import annotations

import json

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
from tests.support.eager import train_eagerly
from tests.support.old_models import (
    DATA,
    GOLDEN,
    NAMES,
    NO_DROPOUT,
    STEP,
    change_settings,
    copied,
    expected,
    request,
    variables_of,
    write_variables,
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


@pytest.mark.parametrize(
    ("name", "search", "beam_size"),
    [("v3", "beam", 4), ("v1", "greedy", 1), ("separate", "beam", 4)],
)
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
def test_the_next_updates_are_tensor2tensors(tmp_path, name, monkeypatch):
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
    train_eagerly(monkeypatch)
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


@pytest.fixture
def model(tmp_path):
    return copied("v1", tmp_path / "model")


def logits_of(model, **changes):
    """Import a changed copy of the post-norm model, and return logits."""
    system, report = import_checkpoint(request(model, **changes), model.parent / "run")
    _, arrays = expected("v1")
    batch = {side: arrays[side] for side in ("inputs", "targets")}
    return np.asarray(system.model(batch)), arrays["logits"], report


def test_convolutions_of_width_one_are_the_feed_forward_network(model):
    """Early versions wrote those instead of matrices."""
    variables = variables_of(model)
    for name in [name for name in variables if "/ffn/conv" in name]:
        value = variables.pop(name)
        shape = value.shape if value.ndim == 1 else (1, 1, *value.shape)
        old = name.replace("/ffn/", "/ffn/conv_hidden_relu/")
        variables[old] = value.reshape(shape)
    write_variables(model, variables)
    change_settings(model, ffn_layer="conv_hidden_relu")
    found, there, _ = logits_of(model)
    np.testing.assert_allclose(found, there, rtol=0, atol=1e-5)


def test_embeddings_may_be_shared_without_the_softmax(model):
    variables = variables_of(model)
    for name in [name for name in variables if "/shared/" in name]:
        variables[name.replace("/shared/", "/softmax/")] = 2 * variables[name]
    write_variables(model, variables)
    found, there, _ = logits_of(model)
    np.testing.assert_allclose(found, 2 * there, rtol=0, atol=2e-5)


def test_two_vocabularies_of_one_size_share_no_matrix(model):
    """Ids of two vocabularies mean different text here, which changes no logit."""
    vocabulary = DATA / "vocab.translate_golden.256.subwords"
    other = model.parent / "vocab.other"  # early versions named no kind
    lines = vocabulary.read_text("utf-8").splitlines()
    other.write_text("\n".join([*lines[:2], *reversed(lines[2:])]), encoding="utf-8")
    found, there, _ = logits_of(
        model, source_vocab=str(vocabulary), target_vocab=str(other)
    )
    np.testing.assert_allclose(found, there, rtol=0, atol=1e-5)


def test_another_row_of_the_target_spaces_is_another_function(model):
    found, there, report = logits_of(model, target_space_id=3)
    assert np.abs(found - there).max() > 0.1
    assert report.comparison.largest < 1e-5


def test_a_model_without_target_spaces_has_no_bias(model):
    variables = variables_of(model)
    del variables["transformer/body/target_space_embedding/kernel"]
    write_variables(model, variables)
    change_settings(model, use_target_space_embedding=False)
    *_, report = logits_of(model)
    assert "encoder_input_bias" not in report.translated.hparams
    assert report.target_space == ""


def test_names_of_early_versions_are_known(model):
    settings = json.loads((model / "hparams.json").read_text())
    old = {"residual_dropout": 0.3} | {
        name: settings[name]
        for name in ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")
    }
    old |= {name: settings[name] for name in settings if name.startswith("layer_p")}
    old |= {"learning_rate": 0.2, "vocab_divisor": 16, "weight_decay": 0.1}
    del old["layer_prepostprocess_dropout"]
    (model / "hparams.json").write_text(json.dumps(old))
    found, there, report = logits_of(model)
    np.testing.assert_allclose(found, there, rtol=0, atol=1e-5)
    hparams = Run.load_existing(model.parent / "run").hparams
    assert hparams.layer_prepostprocess_dropout == 0.3
    assert hparams.learning_rate_constant == 2.0
    assert [note.partition("=")[0] for note in report.translated.notes] == [
        "weight_decay",
        "vocab_divisor",
    ]


def test_moments_of_another_step_are_not_used(tmp_path):
    """As `t2t-avg-all` leaves them: it averages them, and Adam's powers, too."""
    model = copied("v3", tmp_path / "model")
    variables = variables_of(model)
    variables["training/beta2_power"] = np.float32(0.5)
    write_variables(model, variables)
    _, report = import_checkpoint(request(model), tmp_path / "run")
    assert "not used, because its moments are those of another step" in report.training


def test_its_own_test_checkpoint_is_equal(tmp_path, shared_data):
    """It is of 2017; its hparams.json and vocabulary are older than tensor2tensor's."""
    folder = shared_data / "tensor2tensor"
    asked = request(folder / "transformer_test_ckpt", data_dir=str(folder))
    system, report = import_checkpoint(asked, tmp_path / "run")
    arrays = np.load(GOLDEN / "wmt8k" / "expected.npz")
    logits = system.model({side: arrays[side] for side in ("inputs", "targets")})
    difference = np.abs(logits[..., ::64] - arrays["logits"])
    assert difference[arrays["targets"] > 0].max() < 1e-5
    assert "row 8 of 32, the only one that was trained" in report.target_space
