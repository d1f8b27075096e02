"""An unlikely dev set is noticed; the text is that of the embedded grammar."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path

import pytest

from t2t_repro import catalogue
from t2t_repro.data.prepare import prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.request import PairFiles
from t2t_repro.errors import UserError
from t2t_repro.runs.training_summary import (
    SubwordModel,
    decoded_pairs,
    dev_warning,
    warn_of_unlikely_dev,
)
from t2t_repro.text import SymbolTokenizer

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
    """Return pairs of the embedded grammar."""
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
    with pytest.raises(UserError, match="cannot read the prepared data: corrupted"):
        decoded_pairs(
            dataclasses.replace(shards, paths=(str(copy),)), data.tokenizers(), 9
        )


def test_a_training_logs_one_warning(data, caplog, monkeypatch):
    caplog.set_level(logging.WARNING, "t2t_repro")
    warn_of_unlikely_dev(data)
    assert caplog.messages == []
    shards = PreparedData.shards

    def swapped(self, split):
        found = shards(self, split)
        changed = type(found)(found.paths, swap_sides=split == "dev")
        return changed

    monkeypatch.setattr(PreparedData, "shards", swapped)
    source, target = data.tokenizers()
    if source is target:
        warn_of_unlikely_dev(data)
        (message,) = caplog.messages
        assert "the sides seem to be swapped" in message
