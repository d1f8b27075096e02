"""What cannot be imported is refused by name, and nothing is written."""

from __future__ import annotations

import os

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.cli.main import main
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.checkpoint_import import import_checkpoint
from t2t_repro.features.tensor2tensor.numpy_forward import NumpyForward
from t2t_repro.features.tensor2tensor.old_checkpoint_files import find_old_checkpoint
from tests.support.old_models import (
    DATA,
    STEP,
    change_settings,
    copied,
    request,
    variables_of,
    write_variables,
)


@pytest.fixture
def model(tmp_path):
    return copied("v1", tmp_path / "model")


def refused(model, message, **changes):
    with pytest.raises(UserError, match=message):
        import_checkpoint(request(model, **changes), model.parent / "run")
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"self_attention_type": "local"}, "self_attention_type=local, expected dot_p"),
        ({"symbol_modality_skip_top": True}, "symbol_modality_skip_top=True"),
        ({"ffn_layer": "conv_relu_conv"}, "ffn_layer=conv_relu_conv"),
        ({"target_modality": "symbol:ctc"}, "target_modality=symbol:ctc"),
        ({"norm_type": "batch"}, "norm_type=batch"),
        ({"layer_postprocess_sequence": "da"}, "layer_postprocess_sequence=da"),
        ({"layer_preprocess_sequence": []}, r"layer_preprocess_sequence=\[\]"),
        ({"num_heads": "many"}, "num_heads=many"),
        ({"num_heads": 5}, "num_heads must divide hidden_size"),
        ({"filter_size": 64}, "filter_size=64 in .*, expected 32, which the variables"),
        ({"num_hidden_layers": 3}, "num_encoder_layers=3"),
        ({"vocab_divisor": 0}, "vocab_divisor=0"),
        ({"batch_size": 0}, "batch_size"),
        ({"versions": {}}, "a run of `t2t train`"),
    ],
)
def test_settings_that_are_not_followed(model, changes, message):
    change_settings(model, **changes)
    refused(model, message)


def renamed(old, new):
    def change(variables):
        for name in [*variables]:
            variables[name.replace(old, new)] = variables.pop(name)

    return change


def without(part):
    def change(variables):
        for name in [name for name in variables if part in name]:
            del variables[name]

    return change


ATTENTION = "transformer/body/encoder/layer_0/self_attention/multihead_attention"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed("transformer/", "lstm_seq2seq/"), "of lstm_seq2seq, expected"),
        (renamed("symbol_modality_272_24", "real_modality"), "modality real_modality"),
        (
            lambda variables: variables.update({f"{ATTENTION}/r": np.ones(2)}),
            "the variable transformer/body/encoder/.*/r,",
        ),
        (without("shared/weights_9"), "255 rows in 15 shards, expected 272"),
        (without("layer_1/ffn/conv2/bias"), "shape none for .*feed_forward/output/bia"),
        (without("/body/"), "without the matrix .*/q/kernel"),
        (
            lambda variables: variables.update({f"{ATTENTION}/q/kernel": np.ones(24)}),
            "without the matrix .*/q/kernel",
        ),
        (without("transformer"), "no variables of a model"),
    ],
)
def test_variables_of_other_models(model, change, message):
    variables = variables_of(model)
    change(variables)
    write_variables(model, variables)
    refused(model, message)


def test_a_checkpoint_of_tensorflow_2(model):
    tf.train.Checkpoint(step=tf.Variable(1)).write(str(model / f"model.ckpt-{STEP}"))
    refused(model, "a checkpoint of TensorFlow 2")


@pytest.mark.parametrize(
    ("kind", "message"),
    [("data-00000-of-00001", "cut short|is damaged"), ("index", "is damaged")],
)
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_files_that_are_cut(model, kind, message, kept):
    (file,) = model.glob(f"*.{kind}")
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content))])
    refused(model, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_vocab": str(DATA / "vocab.translate_golden_two.256.subwords.de")},
         "with 140 entries, expected 272"),
        ({"source_vocab": "nowhere"}, "nowhere"),
        ({"target_vocab": "nowhere"}, "without source_vocab"),
        ({"data_dir": "nowhere"}, "without a file vocab.*, expected a vocab.* of 272 "),
        ({"target_space_id": 32}, "target_space_id=32, expected a row below 32"),
        ({"hparams": "num_heads"}, "expected name=value"),
        ({"hparams": "num_heads=" + "[" * 10**5}, "received num_heads=."),
        ({"checkpoint_path": "nowhere"}, "received nowhere, expected a folder"),
        ({"checkpoint_path": "/"}, "expected a folder with a checkpoint"),
    ],
)  # fmt: skip
def test_requests_that_do_not_fit(model, changes, message):
    refused(model, message, **changes)


def test_a_vocabulary_of_another_size(model):
    change_settings(model, vocab_divisor=1)  # 258 entries are no longer 272 rows
    refused(model, r"other sizes: .*\.subwords \(258\)")


def test_logits_that_differ(model, monkeypatch):
    exact = NumpyForward.logits
    monkeypatch.setattr(NumpyForward, "logits", lambda *ids: exact(*ids) + 2e-4)
    refused(model, "largest difference on 16 pairs is 2.0e-04, expected at most 1e-04")


@pytest.mark.parametrize("name", [f"model.ckpt-{STEP}.index", "vocab.x.tokens"])
def test_files_whose_end_might_never_come(model, name):
    (model / name).unlink(missing_ok=True)
    os.mkfifo(model / name)
    changes = {"source_vocab": str(model / name)} if "vocab" in name else {}
    refused(model, "is not a regular file", **changes)


def test_a_state_file_that_names_nothing(model):
    (model / "checkpoint").write_text(f'model_checkpoint_path: "{"x" * 5000}"\n')
    assert find_old_checkpoint(model) == str(model / f"model.ckpt-{STEP}")


def test_the_command_says_it_in_one_line(model, capsys):
    change_settings(model, ffn_layer="sru")
    data = ["--data_dir", str(DATA), "--output_dir", str(model.parent / "run")]
    assert main(["import", "--from", "tensor2tensor", str(model), *data]) == 1
    assert "ffn_layer=sru" in capsys.readouterr().err
    assert not (model.parent / "run").exists()
