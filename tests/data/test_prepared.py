"""The files of prepared data are checked as far as each use needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2t_repro.data import prepare as prepare_module
from t2t_repro.data import prepared
from t2t_repro.data.pipeline import (
    BatchPlan,
    Shards,
    evaluation_batches,
    training_epoch,
)
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem, ReversedProblem
from t2t_repro.errors import UserError
from t2t_repro.runs.resuming import recorded_data_dir
from t2t_repro.runs.run import RUN_FILE
from t2t_repro.settings.prepare_settings import PrepareSettings
from tests.runs.test_run import make_run
from tests.support.corpus import rows_of
from tests.support.pairs_problem import DIGITS, LETTERS, Pairs
from tests.support.pairs_problem import SETTINGS as PAIRS_SETTINGS
from tests.support.recorder import spy

SETTINGS = PrepareSettings(vocab_size=300, num_shards=2, shared_vocabulary=False)
PLAN = BatchPlan((64,), (4,))


TEXT = {
    "train": [("a dog", "ein Hund"), ("two cats", "zwei Katzen")] * 9,
    "dev": [("a cat", "eine Katze"), ("two dogs", "zwei Hunde")],
    "test": [("three dogs", "drei Hunde")],
}


class Animals(Problem):
    """Counts animals from English to German."""

    def pairs(self, split, tmp_dir):
        yield from TEXT[split]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("animals")
    prepare(Animals(), path, settings=SETTINGS)
    return path


@pytest.fixture(scope="module")
def data(folder) -> PreparedData:
    return PreparedData.load(folder, Animals())


@pytest.fixture(scope="module")
def reverse(folder) -> PreparedData:
    return PreparedData.load(folder, ReversedProblem(Animals()))


def test_shards_are_the_paths_of_a_split(data, folder):
    first, second = (
        f"{folder}/animals-train-0000{number}-of-00002" for number in (0, 1)
    )
    assert data.splits == ("train", "dev", "test")
    assert data.shards("train") == Shards((first, second))
    assert data.shards("dev") == Shards((f"{folder}/animals-dev-00000-of-00001",))


def test_other_splits_are_refused(data):
    with pytest.raises(UserError, match="'train', expected one of dev, test"):
        data.raw_text("train")
    with pytest.raises(UserError, match="'valid', expected one of train, dev, test"):
        data.shards("valid")


def decoded(tokenizers, batches) -> list[tuple[str, str]]:
    source, target = tokenizers
    rows = [row for batch in batches for row in rows_of(batch)]
    return [(source.decode(inputs), target.decode(ids)) for inputs, ids in rows]


def flipped(pairs) -> list[tuple[str, str]]:
    return [(target, source) for source, target in pairs]


def test_all_text_is_swapped_if_the_problem_is_reversed(data, reverse):
    for read, swap in ((data, list), (reverse, flipped)):
        batches = training_epoch(read.shards("train"), PLAN, seed=1, epoch=0)
        found = decoded(read.tokenizers(), batches)
        assert sorted(found) == sorted(swap(TEXT["train"]))
        for split in ("dev", "test"):
            batches = evaluation_batches(read.shards(split), PLAN)
            assert decoded(read.tokenizers(), batches) == swap(TEXT[split])
            raw = zip(*read.raw_text(split), strict=True)
            assert list(raw) == swap(TEXT[split])
    assert data.digest == reverse.digest


def test_missing_data_is_refused_with_the_command_that_prepares_it(tmp_path):
    command = f"t2t datagen --problem animals --data_dir {tmp_path}"
    with pytest.raises(UserError, match=command):
        PreparedData.load(tmp_path, ReversedProblem(Animals()))


def test_data_that_has_moved_is_refused_with_the_advice_of_a_resumed_training(tmp_path):
    with pytest.raises(UserError) as found:
        PreparedData.load(tmp_path / "moved", Animals())
    run = make_run(data_dir=str(tmp_path / "moved"))
    with pytest.raises(UserError) as resumed:
        recorded_data_dir(run, "run")
    recorded = f", recorded in {Path('run', RUN_FILE)},"
    assert str(found.value) == str(resumed.value).replace(recorded, "")
    assert "give its new place as data_dir" in str(found.value)


def test_preparing_and_opening_return_the_same_data(tmp_path):
    problem = ReversedProblem(Animals())
    data = prepare(problem, str(tmp_path), settings=SETTINGS)
    assert data == PreparedData(problem, tmp_path, data.manifest)
    assert data.manifest == PreparedData.load(tmp_path, problem).manifest


def test_missing_data_is_prepared_with_the_given_settings(tmp_path):
    data = open_or_prepare(Animals(), tmp_path, {"vocab_size": 290, "shuffle_seed": 5})
    settings = data.manifest.settings
    assert (settings["vocab_size"], settings["seed"]) == (290, 5)
    assert len(data.shards("train").paths) == 10


def test_the_name_of_a_folder_keeps_its_capitals_in_the_advice(tmp_path):
    folder = tmp_path / "My Data"
    prepare(Animals(), folder, settings=SETTINGS)
    with pytest.raises(UserError, match=f"\nRemove {folder} or give another"):
        open_or_prepare(Animals(), folder, {"num_shards": 3})


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """Prepare digits and letters, without learning a vocabulary."""
    sides = (DIGITS, LETTERS)
    monkeypatch.setattr(prepare_module, "given_tokenizers", lambda *_: sides)
    return prepare(Pairs(), tmp_path / "data", None, PAIRS_SETTINGS)


def test_reading_shards_checks_sizes_without_reading_the_files(digits, monkeypatch):
    """Checksums of a large corpus take minutes."""
    read = spy(monkeypatch, prepared, "identity")
    shards = digits.shards("train")
    assert read.calls == []
    names = digits.manifest.splits["train"].shards
    assert shards == Shards(tuple(str(digits.folder / name) for name in names), False)
    digits.check_files(checksums=True)
    paths = [call["path"] for call in read.calls]
    assert paths == [digits.folder / name for name in digits.manifest.files]


def test_a_shard_in_another_folder_is_refused(digits):
    digits.manifest.splits["train"].shards.append("../elsewhere")
    with pytest.raises(UserError, match=r"names the file '\.\./elsewhere'"):
        digits.shards("train")


def changed_file(digits, content):
    path = digits.folder / "pairs-dev.targets.txt"
    path.write_bytes(content)
    return path


def test_a_changed_file_of_the_same_size_is_found_by_its_checksum_alone(digits):
    changed_file(digits, b"b\nc\nb c\n")
    digits.check_files(checksums=False)
    assert open_or_prepare(digits.problem, digits.folder) == digits
    with pytest.raises(UserError, match=r"targets\.txt has changed since"):
        prepare(Pairs(), digits.folder, None, PAIRS_SETTINGS)


@pytest.mark.parametrize("checksums", [True, False])
def test_a_file_of_another_size_or_without_a_file_is_found(digits, checksums):
    path = changed_file(digits, b"b\n")
    with pytest.raises(UserError, match="has 2 bytes, expected 8"):
        digits.check_files(checksums=checksums)
    path.unlink()
    with pytest.raises(UserError, match="is missing"):
        digits.check_files(checksums=checksums)
    with pytest.raises(UserError, match="is missing"):
        digits.shards("train")
