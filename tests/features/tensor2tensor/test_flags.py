from __future__ import annotations

import pytest

from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor.command_flags import (
    Flag,
    min_steps,
    read_flags,
)

FLAGS = {name: Flag(name, "passed") for name in ("model", "train_steps", "job_dir")}
FLAGS |= {name: Flag(name, "dropped", boolean=True) for name in ("sync", "use_tpu")}


def read(*arguments):
    return read_flags(arguments, FLAGS, "`x --help` lists them.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--model=a"], {"model": "a"}),
        (["--model", "a"], {"model": "a"}),
        (["-model", "a"], {"model": "a"}),
        (["--model="], {"model": ""}),
        (["--model=a=b,c=d"], {"model": "a=b,c=d"}),
        (["--train_steps", "-1"], {"train_steps": "-1"}),
        (["--job-dir", "a"], {"job_dir": "a"}),
        (["--sync"], {"sync": "true"}),
        (["--nosync"], {"sync": "false"}),
        (["--sync", "false"], {"sync": "false"}),
        (["--sync", "1"], {"sync": "true"}),
        (["--sync", "--model", "a"], {"sync": "true", "model": "a"}),
        (["--model=a", "--model=b"], {"model": "b"}),
        (["--sync", "--nosync"], {"sync": "false"}),
        ([], {}),
    ],
)
def test_flags_are_read_as_absl_reads_them(arguments, expected):
    assert read(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--modle=a"], "unknown flag '--modle'.\nDid you mean --model"),
        (["--nomodel"], "unknown flag '--nomodel'"),
        (["--model"], "--model: received no value"),
        (["--sync=maybe"], "--sync: received 'maybe', expected true or false"),
        (["file"], "unexpected argument 'file'"),
        (["--"], "unexpected argument '--'"),
    ],
)
def test_a_mistake_is_named(arguments, message):
    with pytest.raises(UsageError) as caught:
        read(*arguments)
    assert message in str(caught.value)


def test_a_number_that_is_none_is_refused():
    assert min_steps({"min_steps": "7"}) == 7
    assert min_steps({}) == min_steps({"min_steps": ""}) == 0
    with pytest.raises(UsageError, match="--min_steps=x: expected a whole number"):
        min_steps({"min_steps": "x"})
