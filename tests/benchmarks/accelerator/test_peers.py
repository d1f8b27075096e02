"""The comparison with other toolkits runs on JAX's CPU backend."""

from __future__ import annotations

import pytest

from tests.support.without_tensorflow import run_without_tensorflow

TINY = (
    *("--hparams", "hidden_size=16,filter_size=32,num_heads=2,num_hidden_layers=1"),
    *("--vocab_size", "50", "--shape", "4x6", "--beam_size", "2"),
    *("--precision", "float32", "--matmul_size", "64"),
)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["train", "decode"])
def test_our_engine_is_timed_in_turns(task):
    turns = ("--rounds", "2", "--seconds", "0.1", "--engines")
    ended = run_without_tensorflow(
        "benchmarks.accelerator.peers.compare", "--task", task, *TINY, *turns
    )
    assert ended.returncode == 0, ended.stderr
    name, tokens, _, ratio, *_ = ended.stdout.splitlines()[-1].split()
    assert (name, ratio) == ("t2t_repro", "1.00")
    assert float(tokens.replace(",", "")) > 0
