import argparse
from pathlib import Path

import pytest

from benchmarks.decoding.compare import commands_of, print_table


@pytest.fixture
def flags() -> argparse.Namespace:
    return argparse.Namespace(
        output_dir="run",
        checkpoint="best",
        source="text",
        weights="weights.npz",
        marian_python="marian/python",
        onmt_python="onmt/python",
        ctranslate2=["exported"],
        compute_types=["float32", "int8"],
        threads=3,
        batch_tokens=2000,
        batch_sentences=16,
    )


def test_every_engine_gets_its_own_interpreter_and_arguments(
    flags: argparse.Namespace,
):
    commands = commands_of(flags)
    given = {name: [Path(c[1]).name, *c[2:]] for name, c in commands.items()}
    assert given == {
        "t2t_repro": ["ours.py", "run", "best", "text", "3", "2000"],
        "Hugging Face": ["marian.py", "weights.npz", "3", "16"],
        "OpenNMT-tf": ["onmt.py", "weights.npz", "3", "16"],
        "CTranslate2 float32": [
            "ct2.py",
            "exported",
            "weights.npz",
            "3",
            "16",
            "float32",
        ],
        "CTranslate2 int8": ["ct2.py", "exported", "weights.npz", "3", "16", "int8"],
    }
    assert commands["Hugging Face"][0] == "marian/python"
    assert commands["OpenNMT-tf"][0] == "onmt/python"


def test_engines_without_an_environment_are_left_out(flags: argparse.Namespace):
    flags.marian_python = flags.onmt_python = None
    flags.ctranslate2 = []
    assert [*commands_of(flags)] == ["t2t_repro"]


def test_the_table_compares_medians_and_outputs(capsys):
    def answer(seconds: float, ids: list[list[int]]) -> dict:
        return {"seconds": seconds, "gigabytes": 1.5, "ids": ids}

    ours, theirs = [[5, 6, 7], [8]], [[5, 6, 7], [9]]
    # The first call is slower, and is not part of the median.
    times = {"t2t_repro": [9.0, 1.0, 4.0, 2.0], "peer": [5.0, 8.0, 3.0, 4.0]}
    print_table(
        4,
        {
            name: [answer(s, ours if name == "t2t_repro" else theirs) for s in seconds]
            for name, seconds in times.items()
        },
    )
    title, _, first, second = capsys.readouterr().out.strip().splitlines()
    # 4 tokens, and EOS twice
    assert title == "beam 4: 2 sentences, 6 target tokens"
    # sentences and tokens per second, ratio, first call, memory, equal lines
    assert first.split()[1:] == ["1.0", "3", "1.00", "+7.0", "s", "1.50", "GB", "2"]
    assert second.split()[1:] == ["0.5", "2", "2.00", "+1.0", "s", "1.50", "GB", "1"]
