from __future__ import annotations

import pytest

from t2t_repro.files import atomic_folder, atomic_write


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["Straße\r\n", "Straße\r\n".encode()])
def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path, content):
    path = tmp_path / "file"
    path.write_text("old")
    atomic_write(path, content)
    assert path.read_bytes() == "Straße\r\n".encode()
    assert names(tmp_path) == ["file"]


def test_a_folder_is_replaced_when_its_content_is_complete(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old").write_text("old")
    with atomic_folder(folder) as beside:
        (beside / "new").write_text("new")
        assert names(folder) == ["old"]
    assert names(tmp_path) == ["folder"]
    assert names(folder) == ["new"]


def test_a_folder_stays_as_it_was_when_writing_fails(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old").write_text("old")
    with pytest.raises(IsADirectoryError), atomic_folder(folder) as beside:
        beside.write_text("half")
    assert names(folder) == ["old"]


def test_what_a_killed_process_left_does_not_disturb(tmp_path):
    folder = tmp_path / "folder"
    for left in ("folder.incomplete", "folder.replaced"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "stale").write_text("stale")
    with atomic_folder(folder) as beside:
        (beside / "new").write_text("new")
    assert names(tmp_path) == ["folder"]
    assert names(folder) == ["new"]
