import argparse
import json

import pytest

from benchmarks.training.arithmetic import Batch, Round, Shape
from benchmarks.training.compare import (
    HPARAMS_SET,
    Measured,
    commands_of,
    hparams_of,
    measure,
    table_lines,
)
from t2t_repro.catalogue import hparams, load

SHAPE = Shape(layers=2, width=128, filter=512, heads=4)
# target tokens of an update
SPEEDS = {"t2t_repro": 100, "peer": 60}
FACTS = {"vocab_size": 8000, "pairs": 100, "longer_side": 16.0}


class Engine:
    """A child that trains at a given speed and records its requests."""

    def __init__(self, name: str, tokens: int, log: list[tuple]) -> None:
        self.name, self.tokens, self.log = name, tokens, log

    def ask(self, request):
        self.log.append((self.name, request))
        if request == "warm_up":
            return {"seconds": 9.0, "shapes": 3, "gigabytes": 0.5}
        if request == "matmul":
            return {"rate": 1e9, "gigabytes": 0.5}
        batch = [self.tokens // 10, 12, 12, self.tokens, self.tokens]
        return {"seconds": 2.0, "batches": [batch], "gigabytes": 1.5}


def test_engines_alternate_after_their_first_updates():
    log = []
    engines = {name: Engine(name, 100, log) for name in ("t2t_repro", "peer")}
    results, rates = measure(engines, 2, 7.0)
    turn = [("t2t_repro", "matmul"), ("t2t_repro", 7.0), ("peer", 7.0)]
    assert log == [("t2t_repro", "warm_up"), ("peer", "warm_up"), *turn, *turn]
    assert rates == [1e9, 1e9]
    assert results["peer"].rounds == [Round(2.0, (Batch(10, 12, 12, 100, 100),))] * 2


def test_the_table_shows_speed_ratio_padding_and_first_updates():
    batches = {name: Batch(10, 10, 10, 90, tokens) for name, tokens in SPEEDS.items()}
    results = {
        name: Measured({"seconds": 4.25, "shapes": 6}, [Round(2.0, (batch,))] * 3, 1.25)
        for name, batch in batches.items()
    }
    header, ours, peer = table_lines(results, [1e9] * 3, SHAPE, 8000)
    assert header.split()[:3] == ["engine", "target", "tokens/s"]
    assert ours.split()[:4] == ["t2t_repro", "50", "1.00", "5.0%"]
    # 90 of 100 source positions and 60 of 100 target positions are tokens
    assert peer.split()[:5] == ["peer", "30", "1.67", "25.0%", "3"]
    assert "4.2 s, 6 shapes" in peer
    assert peer.endswith("1.25 GB")


def test_our_hparams_have_the_sizes_of_the_shape():
    load()
    changes = hparams_of(SHAPE, 1024, "packed_length=64")
    values = hparams(HPARAMS_SET).parse(changes).resolved()
    sizes = (values.num_encoder_layers, values.num_decoder_layers, values.hidden_size)
    assert sizes == (2, 2, 128)
    assert (values.filter_size, values.num_heads) == (512, 4)
    assert (values.batch_size, values.packed_length) == (1024, 64)
    assert (values.max_length, values.min_length_bucket) == (64, 12)
    assert values.length_bucket_step == 1.25


@pytest.fixture
def flags() -> argparse.Namespace:
    return argparse.Namespace(
        data_dir="data",
        threads=2,
        batch_tokens=2048,
        hparams="",
        return_memory=False,
        marian_python="marian/python",
        onmt_python="onmt/python",
        onmt_modes=["graph", "xla"],
    )


def test_the_peers_get_the_same_sizes_and_as_many_tokens(flags: argparse.Namespace):
    commands = commands_of(flags, SHAPE, FACTS)
    assert [*commands] == [
        "t2t_repro",
        "Hugging Face",
        "OpenNMT-tf graph",
        "OpenNMT-tf xla",
    ]
    python, _, folder, sizes, sentences, threads = commands["Hugging Face"]
    assert (python, folder, threads) == ("marian/python", "data", "2")
    assert sentences == "128"  # 2048 / 16
    assert json.loads(sizes) == {
        "layers": 2,
        "width": 128,
        "filter": 512,
        "heads": 4,
        "vocab_size": 8000,
        "longest": 64,
        "dropout": 0.1,
        "smoothing": 0.1,
    }
    assert commands["OpenNMT-tf xla"][3:] == [sizes, "2048", "2", "xla"]


def test_peers_without_an_environment_are_left_out(flags: argparse.Namespace):
    flags.marian_python = flags.onmt_python = None
    assert [*commands_of(flags, SHAPE, FACTS)] == ["t2t_repro"]


def test_ours_with_returned_memory_differs_in_a_setting_of_the_allocator_only(
    flags: argparse.Namespace,
):
    flags.return_memory = True
    commands = commands_of(flags, SHAPE, FACTS)
    setting = ["env", "MALLOC_PERTURB_=0"]
    assert commands["memory returned"] == [*setting, *commands["t2t_repro"]]
