"""What is logged before a training; an unlikely dev set is noticed."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.data.prepare import prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.request import PairFiles
from t2t_repro.errors import UserError
from t2t_repro.runs import training_summary
from t2t_repro.runs.training_summary import (
    SubwordModel,
    decoded_pairs,
    dev_warning,
    warn_of_unlikely_dev,
)
from t2t_repro.text import SymbolTokenizer


class Counts(SimpleNamespace):
    """Counts of a split of which three pairs are longer than 40 tokens."""

    pairs_written = 500

    def longer_than(self, length):
        return {40: self.left_out}[length]


def summary(caplog, jit_compile=False, plan=None, **left_out):
    """Return what the summary of a run logs."""
    caplog.set_level(logging.INFO, "t2t_repro")
    splits = {split: Counts(left_out=count) for split, count in left_out.items()}
    training_summary.log_summary(
        SimpleNamespace(
            hparams=catalogue.hparams("transformer_tiny").replace(max_length=40),
            hparams_set="the set",
            problem="the problem",
            num_replicas=3,
        ),
        SimpleNamespace(manifest=SimpleNamespace(splits=splits)),
        SimpleNamespace(count_params=lambda: 1234),
        plan or BatchPlan((13, 40), (8, 5)),
        jit_compile,
    )
    return caplog.messages


def test_the_summary_names_model_data_and_shapes(caplog):
    assert summary(caplog) == [
        "the set on the problem: 1,234 parameters",
        "2 batch shapes, rows x length: 8 x 13, 5 x 40",
    ]


@pytest.mark.parametrize(
    ("jit_compile", "plan", "expected"),
    [
        (False, BatchPlan((13,), (8,)), "1 batch shape, rows x length: 8 x 13"),
        (True, BatchPlan((13,), (8,)), "8 x 13; XLA compiles each once"),
        (
            False,
            BatchPlan((40,), (3,), packed_length=50, packed_source_length=30),
            "3 x 50 (of sources: 30)",
        ),
    ],
)
def test_shapes_are_counted_and_named(caplog, monkeypatch, jit_compile, plan, expected):
    monkeypatch.setattr(training_summary, "log_left_out", lambda *_: None)
    assert summary(caplog, jit_compile, plan)[-1].endswith(expected)


def test_pairs_left_out_are_counted_in_train_and_dev_if_there_are_any(caplog):
    lines = summary(caplog, train=0, dev=3, test=4)
    assert [line for line in lines if "left out" in line] == [
        "dev: left out 3 of 500 pairs, which are longer than max_length=40"
    ]


TRAINING, DEV = 600, 60
# French sentences on things of everyday life.
FRENCH = [
    "Le petit garçon mange une pomme devant la maison de sa grand-mère.",
    "Nous avons vu beaucoup d'oiseaux près du lac pendant les vacances.",
    "Quelqu'un m'a demandé où se trouvait la gare la plus proche.",
    "Il faisait trop chaud pour travailler, alors ils sont partis à la plage.",
]


@pytest.fixture(scope="module")
def grammar():
    problem = catalogue.problem("translate_ende_synthetic")
    pairs = (tuple(pair) for pair in problem.pairs("train", None))
    return [next(pairs) for _ in range(TRAINING + DEV)]


@pytest.fixture(scope="module", params=[True, False], ids=["shared", "separate"])
def data(request, grammar, tmp_path_factory):
    """Prepare the pairs, with one vocabulary or with two."""
    folder = tmp_path_factory.mktemp("grammar")
    splits = {"train": grammar[:TRAINING], "dev": grammar[TRAINING:]}
    files = {}
    for split, pairs in splits.items():
        paths = [folder / f"{split}.{side}" for side in ("source", "target")]
        for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
            path.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
        files[split] = PairFiles(*paths)
    problem = catalogue.problem("text_pairs").with_files(files)
    settings = problem.prepare_settings.replace(
        vocab_size=900, drop_duplicates=False, shared_vocabulary=request.param
    )
    return prepare(problem, folder / "data", settings=settings)


def warning_about(data, grammar, dev):
    return dev_warning(grammar[:TRAINING], dev, data.tokenizers())


def test_the_right_dev_set_is_accepted(data, grammar):
    assert warning_about(data, grammar, grammar[TRAINING:]) is None


def test_swapped_sides_are_noticed_with_figures(data, grammar):
    swapped = [(target, source) for source, target in grammar[TRAINING:]]
    warning = warning_about(data, grammar, swapped)
    assert warning.startswith("dev: the sides seem to be swapped (sources ")
    assert warning.count("bits per character") == 2
    assert "\n" not in warning


def test_one_side_in_the_language_of_the_other_is_noticed(data, grammar):
    dev = grammar[TRAINING:]
    shifted = [dev[-1][1], *(target for _, target in dev[:-1])]
    only_german = [(s, target) for s, (_, target) in zip(shifted, dev, strict=True)]
    warning = warning_about(data, grammar, only_german)
    assert "the sources look like the targets of the training text" in warning


@pytest.mark.parametrize(("side", "name"), [(0, "sources"), (1, "targets")])
def test_another_language_is_noticed(data, grammar, side, name):
    dev = [list(pair) for pair in grammar[TRAINING:]]
    for number, pair in enumerate(dev):
        pair[side] = FRENCH[number % len(FRENCH)]
    warning = warning_about(data, grammar, dev)
    assert f"the {name} seem to be in another language" in warning


def test_copied_sides_are_noticed(data, grammar):
    copied = [(source, source) for source, _ in grammar[TRAINING:]]
    warning = warning_about(data, grammar, copied)
    assert "equal" in warning
    assert "100%" in warning


def test_alike_sides_of_a_problem_on_symbols_are_accepted():
    digits = SymbolTokenizer(list("0123456789"))
    pairs = [(f"{n % 10} {n // 10}", f"{n // 10} {n % 10}") for n in range(100)]
    assert dev_warning(pairs, pairs[::3], (digits, digits)) is None
    copies = [(source, source) for source, _ in pairs]
    assert dev_warning(copies, copies[::3], (digits, digits)) is None


def test_a_model_counts_bits_per_character():
    # Counts 2 and 1, one more of each of the 5 entries: 3/8 and 2/8, and 1/8 for "c".
    letters = SymbolTokenizer(["a", "b"])
    model = SubwordModel(letters, ["a b", "a"])
    expected = -(2 * math.log2(3 / 8) + math.log2(2 / 8)) / len("a a b")
    assert model.bits_per_character(["a a b"]) == pytest.approx(expected)


def test_pairs_are_read_back_as_text(data, grammar):
    found = decoded_pairs(data.shards("dev"), data.tokenizers(), 7)
    assert found == grammar[TRAINING : TRAINING + 7]


def test_a_damaged_record_is_reported_before_training(data, tmp_path):
    shards = data.shards("train")
    copy = tmp_path / "shard"
    content = bytearray(Path(shards.paths[0]).read_bytes())
    content[200] ^= 0xFF
    copy.write_bytes(content)
    damaged = dataclasses.replace(shards, paths=(str(copy),))
    message = "cannot read the prepared data: corrupted"
    with pytest.raises(UserError, match=message):
        decoded_pairs(damaged, data.tokenizers(), 9)
    given = SimpleNamespace(manifest=data.manifest, shards=lambda split: damaged)
    with pytest.raises(UserError, match=message):
        training_summary.log_left_out(given, 99, packed(30))


def packed(source_length):
    return BatchPlan((99,), (3,), packed_length=99, packed_source_length=source_length)


def test_sources_that_fit_no_packed_row_are_counted_as_well(data, grammar, caplog):
    tokenizer, _ = data.tokenizers()
    lengths = [len(tokenizer.encode(source)) + 1 for source, _ in grammar[:TRAINING]]
    limit = max(lengths) - 1
    for source_length in (99, max(lengths)):
        training_summary.log_left_out(data, 99, packed(source_length))
    assert caplog.messages == []
    training_summary.log_left_out(data, 99, packed(limit))
    assert caplog.messages == [
        f"train: left out {lengths.count(max(lengths))} more pairs, whose sources are "
        f"longer than packed_source_length={limit}"
    ]


def test_a_training_logs_one_warning(data, caplog, monkeypatch):
    caplog.set_level(logging.WARNING, "t2t_repro")
    warn_of_unlikely_dev(data)
    assert caplog.messages == []
    shards = PreparedData.shards

    def swapped(self, split):
        return dataclasses.replace(shards(self, split), swap_sides=split == "dev")

    monkeypatch.setattr(PreparedData, "shards", swapped)
    source, target = data.tokenizers()
    if source is target:
        warn_of_unlikely_dev(data)
        (message,) = caplog.messages
        assert "the sides seem to be swapped" in message
