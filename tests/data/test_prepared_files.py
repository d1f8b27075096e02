"""The files of prepared data are checked as far as each use needs."""

from __future__ import annotations

import pytest

from t2t_repro.data import prepare as prepare_module
from t2t_repro.data import prepared
from t2t_repro.data.pipeline import Shards
from t2t_repro.data.prepare import prepare
from t2t_repro.errors import UserError
from tests.support.pairs_problem import DIGITS, LETTERS, SETTINGS, Pairs
from tests.support.recorder import record, spy


@pytest.fixture
def tokenizers(monkeypatch):
    """Put given tokenizers in place of learned ones, and record the requests."""
    given = record(monkeypatch, prepare_module, "given_tokenizers", None)
    learned = record(monkeypatch, prepare_module, "learn_tokenizers", (DIGITS, LETTERS))
    return given, learned


@pytest.fixture
def data(tmp_path, tokenizers):
    return prepare(Pairs(), tmp_path / "data", None, SETTINGS)


def test_reading_shards_checks_sizes_without_reading_the_files(data, monkeypatch):
    """Checksums of a large corpus take minutes."""
    read = spy(monkeypatch, prepared, "identity")
    shards = data.shards("train")
    assert read.calls == []
    names = data.manifest.splits["train"].shards
    assert shards == Shards(tuple(str(data.folder / name) for name in names), False)
    data.check_files(checksums=True)
    paths = [call["path"] for call in read.calls]
    assert paths == [data.folder / name for name in data.manifest.files]


def test_a_shard_in_another_folder_is_refused(data):
    data.manifest.splits["train"].shards.append("../elsewhere")
    with pytest.raises(UserError, match=r"names the file '\.\./elsewhere'"):
        data.shards("train")


def changed_file(data, content):
    path = data.folder / "pairs-dev.targets.txt"
    path.write_bytes(content)
    return path


def test_a_changed_file_of_the_same_size_is_found_by_its_checksum_alone(data):
    changed_file(data, b"b\nc\nb c\n")
    data.check_files(checksums=False)
    with pytest.raises(UserError, match=r"targets\.txt has changed since"):
        data.check_files(checksums=True)


@pytest.mark.parametrize("checksums", [True, False])
def test_a_file_of_another_size_or_without_a_file_is_found(data, checksums):
    path = changed_file(data, b"b\n")
    with pytest.raises(UserError, match="has 2 bytes, expected 8"):
        data.check_files(checksums=checksums)
    path.unlink()
    with pytest.raises(UserError, match="is missing"):
        data.check_files(checksums=checksums)


def test_shards_are_those_of_their_split(data):
    for split in ("train", "dev", "test"):
        assert all(f"-{split}-" in path for path in data.shards(split).paths)
    with pytest.raises(UserError, match="'valid', expected one of train, dev, test"):
        data.shards("valid")


def test_raw_text_is_that_of_its_split_and_side(data):
    assert data.raw_text("dev") == (["2", "3", "1 1 1"], ["b", "c", "b b"])
    assert data.raw_text("test") == (["1 3 2"], ["a c"])
    with pytest.raises(UserError, match="'train', expected one of dev, test"):
        data.raw_text("train")
