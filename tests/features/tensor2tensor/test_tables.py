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

# Sets that have names of tensor2tensor 1.0 and its values of then: the paper's.
OF_VERSION_1 = {"transformer_big_dr3"}


@pytest.mark.parametrize("name", [name for name, old in SETS.items() if not old.base])
def test_a_set_without_equal_here_names_one_that_exists(name):
    catalogue.load()
    assert any(known in SETS[name].answer for known in registry.hparams_sets.names())


def test_accumulated_gradients_are_answered_with_the_tokens_of_their_update():
    # 8 steps of 4,096 tokens, tensor2tensor's batch size.
    answer = SETS["transformer_base_multistep8"].answer
    assert answer.endswith(f"update_tokens={8 * 4096}")


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
