from __future__ import annotations

import contextlib

import pytest

from t2t_repro.data.text_files import identity
from t2t_repro.data.work_folder import WorkFolder
from t2t_repro.data.worker_pool import WorkerEnded


@pytest.fixture
def work(tmp_path):
    folder = WorkFolder(tmp_path, "pairs")
    folder.folder.mkdir()
    return folder


def test_entries_are_found_under_their_key_only(work):
    assert work.entries("key") == []
    work.append({"a": 1})
    work.append({"b": [2, "ü"]})
    assert work.entries("key") == [{"a": 1}, {"b": [2, "ü"]}]
    assert work.entries("other") == []
    assert work.entries("key") == []


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path):
    precious = tmp_path / "home"
    precious.mkdir()
    (tmp_path / "pairs.unfinished").symlink_to(precious)
    with WorkFolder(tmp_path, "pairs") as work:
        work.entries("key")
    assert list(precious.iterdir()) == []


@pytest.mark.parametrize("cut", range(1, 9))
def test_an_entry_that_was_cut_short_is_ignored_and_can_be_followed(work, cut):
    work.entries("key")
    work.append({"a": 1})
    work.append({"b": 2})
    journal = work.path("journal.jsonl")
    journal.write_bytes(journal.read_bytes()[:-cut])
    # Without its line feed alone, an entry is complete.
    kept = [{"a": 1}, {"b": 2}][: 2 if cut == 1 else 1]
    assert work.entries("key") == kept
    work.append({"c": 3})
    assert work.entries("key") == [*kept, {"c": 3}]


def test_a_file_is_kept_only_with_its_content(work):
    assert work.load("model") is None
    work.save("model", b"content")
    assert work.load("model") == b"content"
    path = work.path("model")
    path.write_bytes(path.read_bytes()[:-1])
    assert work.load("model") is None
    path.write_bytes(b"")
    assert work.load("model") is None


def test_a_file_is_compared_with_its_entry(work):
    path = work.path("piece")
    path.write_bytes(b"content")
    facts = identity(path)
    assert work.has("piece", facts)
    path.write_bytes(b"Content")
    assert not work.has("piece", facts)
    path.unlink()
    assert not work.has("piece", facts)


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (KeyboardInterrupt(), True),
        (SystemExit(1), True),
        (WorkerEnded("killed"), True),
        (OSError("full"), False),
        (None, False),
    ],
)
def test_the_folder_remains_only_if_the_work_can_be_resumed(tmp_path, error, stays):
    work = WorkFolder(tmp_path, "pairs")
    with contextlib.suppress(BaseException), work:
        work.save("model", b"content")
        if error is not None:
            raise error
    assert work.folder.exists() == stays
