"""The tables of flags, sets and problems agree with tensor2tensor and with `t2t`."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.cli.main import COMMANDS as NEW_COMMANDS
from t2t_repro.features.tensor2tensor.command_flags import COMMANDS
from t2t_repro.features.tensor2tensor.command_line import Translation
from t2t_repro.features.tensor2tensor.command_main import explanation
from t2t_repro.features.tensor2tensor.old_names import (
    DECODE_HPARAMS,
    HPARAMS,
    PROBLEMS,
    SETS,
)
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams

# tensor2tensor 1.15's models/transformer.py: the values that its sets change, beginning
# with those of transformer_base_v3. The names of the values are the same here.
V3 = {
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
    "batch_size": 4096,
    "max_length": 256,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "label_smoothing": 0.1,
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.997,
    "optimizer_adam_epsilon": 1e-9,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    "learning_rate_constant": 2.0,
    "learning_rate_warmup_steps": 8000,
    "shared_embedding_and_softmax_weights": True,
    "attention_key_channels": 0,
    "pos": "timing_concat",  # "timing" there
}
BIG = {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16}
SINGLE_GPU = {
    "batch_size": 1024,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
    "learning_rate_constant": 0.1,
    "learning_rate_warmup_steps": 16000,
}
BIG_2048 = BIG | {"layer_prepostprocess_dropout": 0.3, "batch_size": 2048}
V1 = {
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_preprocess_sequence": "none",
    "layer_postprocess_sequence": "dan",
    "optimizer_adam_beta2": 0.98,
    "learning_rate_warmup_steps": 4000,
    "learning_rate_constant": 1.0,  # learning_rate=0.1 under the schedule "legacy"
}
CHANGES = {
    "transformer_base": {},
    "transformer_base_v3": {},
    "transformer_base_v2": {"optimizer_adam_beta2": 0.98},
    "transformer_base_v1": V1,
    "transformer_base_single_gpu": SINGLE_GPU,
    "transformer_big": BIG_2048,
    "transformer_big_single_gpu": BIG_2048
    | {"layer_prepostprocess_dropout": 0.1, "learning_rate_warmup_steps": 16000},
    "transformer_big_dr1": BIG | {"layer_prepostprocess_dropout": 0.1},
    "transformer_big_dr2": BIG | {"layer_prepostprocess_dropout": 0.2},
    "transformer_big_enfr": BIG
    | {"filter_size": 8192, "shared_embedding_and_softmax_weights": False},
    **{
        f"transformer_{name}": dict(
            zip(("num_hidden_layers", *BIG), (2, *sizes), strict=True)
        )
        for name, sizes in (
            ("tiny", (128, 512, 4)),
            ("small", (256, 1024, 4)),
            ("test", (16, 8, 2)),
        )
    },
    "transformer_parsing_base": {
        "attention_dropout": 0.2,
        "layer_prepostprocess_dropout": 0.2,
        "max_length": 512,
        "learning_rate_warmup_steps": 16000,
        "hidden_size": 1024,
        "shared_embedding_and_softmax_weights": False,
    },
    "transformer_parsing_big": BIG_2048
    | {
        "max_length": 512,
        "learning_rate_warmup_steps": 4000,
        "layer_prepostprocess_dropout": 0.1,
    },
    "transformer_parsing_ice": SINGLE_GPU
    | {"batch_size": 4096, "shared_embedding_and_softmax_weights": False},
    **{
        f"transformer_{name}{value}": {hparam: value / scale}
        for name, hparam, scale, values in (
            ("l", "num_hidden_layers", 1, (2, 4, 8, 10)),
            ("h", "num_heads", 1, (1, 4, 16, 32)),
            ("k", "attention_key_channels", 1, (128, 256)),
            ("ff", "filter_size", 1, (1024, 4096)),
            ("hs", "hidden_size", 1, (256, 1024)),
            ("dr", "layer_prepostprocess_dropout", 10, (0, 2)),
            ("ls", "label_smoothing", 10, (0, 2)),
        )
        for value in values
    },
}
# Sets that have names of tensor2tensor 1.0 and its values of then: the paper's.
OF_VERSION_1 = {"transformer_big_dr3"}


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_tensor2tensors_values_or_names_one_that_exists(name):
    old = SETS[name]
    if not old.base:
        catalogue.load()
        assert any(known in old.answer for known in registry.hparams_sets.names())
        return
    text = ",".join(f"{key}={value}" for key, value in old.changes.items())
    hparams = catalogue.hparams(old.base).parse(text)
    expected = V3 | CHANGES[name]
    assert {key: getattr(hparams, key) for key in expected} == expected


def test_accumulated_gradients_are_answered_with_the_tokens_of_their_update():
    # 8 steps of 4,096 tokens, tensor2tensor's batch size.
    answer = SETS["transformer_base_multistep8"].answer
    assert answer.endswith(f"update_tokens={8 * V3['batch_size']}")


def test_no_set_of_tensor2tensors_name_runs_other_values_silently():
    # A set here whose name tensor2tensor 1.15 has, too, must be in the table.
    catalogue.load()
    registered = registry.hparams_sets.names()
    theirs = {name for name in registered if "tensor2tensor" in _summary(name)}
    assert len(theirs) > 20
    assert theirs - OF_VERSION_1 - {"transformer_big_v3"} <= set(SETS)


def _summary(name):
    return registry.hparams_sets.entry(name).summary


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_one_here_or_is_answered(name):
    old = PROBLEMS[name]
    catalogue.load()
    assert name not in registry.problems
    assert old.name in registry.problems if old.name else old.answer


def test_hparams_of_both_are_not_in_the_table_of_others():
    assert set(HPARAMS).isdisjoint(HParams.names())
    renamed = {old.renamed for old in HPARAMS.values() if old.renamed}
    assert renamed <= set(HParams.names())
    # Its meaning differs.
    assert set(DECODE_HPARAMS) & set(DecodeHParams.names()) == {"batch_size"}


@pytest.mark.parametrize(("name", "command"), COMMANDS.items())
def test_every_flag_is_explained_and_has_a_receiver_in_some_command(name, command):
    accepted = {flag for new in NEW_COMMANDS for flag in Translation(new).accepted}
    for flag in command.flags.values():
        assert explanation(name, flag)
        assert set(flag.to) <= accepted
    assert set(command.runs) <= set(NEW_COMMANDS)
