"""Files are written completely or not at all, and paths are checked."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.errors import UserError
from t2t_repro.files import (
    MAX_BYTES,
    atomic_folder,
    atomic_write,
    check_local_path,
    check_tensorflow_path,
    complete_name,
    current_folder,
    description_text,
    differences,
    folder_lock,
    full_disk_as_user_error,
    incomplete_name,
    load_description,
    matching,
    path_inside,
    recover_folder,
)
from tests.support.file_limit import largest_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def precious(tmp_path_factory):
    path = tmp_path_factory.mktemp("home") / "precious"
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


@pytest.mark.parametrize("name", ["file", "file.0123abcd", "a.incomplete"])
def test_the_name_of_an_incomplete_file_tells_its_complete_one(name):
    assert complete_name(incomplete_name(name)) == name


def test_a_link_under_a_name_that_can_be_guessed_is_not_followed(tmp_path, precious):
    (tmp_path / "file.incomplete").symlink_to(precious)
    atomic_write(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.parametrize("kind", [".incomplete", ".replaced"])
def test_links_beside_a_folder_are_removed_and_not_followed(tmp_path, precious, kind):
    (tmp_path / "folder").mkdir()
    (tmp_path / f"folder{kind}").symlink_to(precious.parent)
    with atomic_folder(tmp_path / "folder") as beside:
        (beside / "new").write_text("new")
    assert names(tmp_path) == ["folder"]
    assert names(tmp_path / "folder") == ["new"]


def test_a_lock_that_is_a_link_is_refused_and_not_followed(tmp_path, precious):
    (tmp_path / "lock").symlink_to(precious)
    with (
        pytest.raises(UserError, match=r"lock is a symbolic link.*: remove the link"),
        folder_lock(tmp_path, "lock", "training"),
    ):
        pass


def test_a_lock_that_is_another_name_of_a_file_leaves_the_file(tmp_path, precious):
    (tmp_path / "lock").hardlink_to(precious)
    with folder_lock(tmp_path, "lock", "training"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    assert names(tmp_path) == []


@pytest.mark.parametrize("content", ["Straße\r\n", "Straße\r\n".encode()])
@pytest.mark.parametrize("is_link", [True, False])
def test_a_file_or_link_is_replaced_and_nothing_else_is_left(
    tmp_path, precious, content, is_link
):
    path = tmp_path / "file"
    if is_link:
        path.symlink_to(precious)
    else:
        path.write_text("old")
    atomic_write(path, content)
    assert path.read_bytes() == "Straße\r\n".encode()
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("left", [(), (".incomplete", ".replaced")])
def test_a_folder_is_replaced_when_its_content_is_complete(tmp_path, left):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old").write_text("old")
    leave(folder, *left)  # by a process that was killed
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
    assert names(tmp_path) == ["folder"]


def leave(folder, *kinds):
    """Make the folders that a killed `atomic_folder` can leave."""
    for kind in kinds:
        left = folder.with_name(folder.name + kind)
        left.mkdir()
        (left / "file").write_text(kind)


def test_an_old_folder_that_was_renamed_survives_a_failed_write(tmp_path):
    folder = tmp_path / "folder"
    leave(folder, ".incomplete", ".replaced")
    with pytest.raises(IsADirectoryError), atomic_folder(folder) as beside:
        beside.write_text("half")
    assert names(tmp_path) == ["folder"]
    assert (folder / "file").read_text() == ".replaced"


@pytest.mark.parametrize(
    ("kinds", "content"),
    [
        ([".incomplete", ".replaced"], ".replaced"),
        (["", ".replaced"], ""),  # the new folder is complete
        ([], None),
    ],
)
def test_recovery_leaves_the_newest_complete_folder(tmp_path, kinds, content):
    folder = tmp_path / "folder"
    leave(folder, *kinds)
    recover_folder(folder)
    assert names(tmp_path) == (["folder"] if kinds else [])
    assert not kinds or (folder / "file").read_text() == content


def test_readers_find_an_old_folder_that_was_renamed_and_leave_it(tmp_path):
    folder = tmp_path / "folder"
    assert current_folder(folder) == folder
    leave(folder, ".replaced")
    assert current_folder(folder) == tmp_path / "folder.replaced"
    leave(folder, "")
    assert current_folder(folder) == folder
    assert names(tmp_path) == ["folder", "folder.replaced"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with (
        pytest.raises(OSError, match="File too large") as caught,
        largest_file(1),
    ):
        atomic_write(path, "new")
    assert caught.value.filename == str(path)
    assert names(tmp_path) == ["file"]
    assert path.read_text() == "old"


def full(path=None):
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (full("run/metrics.jsonl"), "run/metrics.jsonl"),
        (full(), "run"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "run"),
        # TensorFlow's errors are of another class.
        (RuntimeError("run/model.ckpt-1_temp; No space left on device"), "run"),
    ],
)
def test_a_full_disk_is_a_user_error(error, place):
    with (
        pytest.raises(UserError, match=rf"^cannot write {place}: .*; free space, then"),
        full_disk_as_user_error(Path("run"), "then try again"),
    ):
        raise error


def test_a_limit_on_the_size_of_files_is_named(tmp_path):
    limit = r"cannot write .*file: File too large; raise the limit .*ulimit -f`\), then"
    with (
        pytest.raises(UserError, match=limit),
        full_disk_as_user_error(tmp_path, "then try again"),
        largest_file(1),
    ):
        atomic_write(tmp_path / "file", "new")


@pytest.mark.parametrize("error", [PermissionError(13, "no"), ValueError("x")])
def test_other_errors_pass(error):
    with (
        pytest.raises(type(error)),
        full_disk_as_user_error(Path("run"), "then try again"),
    ):
        raise error


HOLD_LOCK = """
import sys
from pathlib import Path
from t2t_repro.files import folder_lock
with folder_lock(Path(sys.argv[1]), "lock", "training"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Start another process that holds the lock of the folder "run"."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_lock_held_by_another_process_is_a_user_error(tmp_path, holder):
    expected = (
        rf"^another process \(pid {holder.pid}\) is training in .*/run: wait for it "
        r"to end, or give another folder\.$"
    )
    with (
        pytest.raises(UserError, match=expected),
        folder_lock(tmp_path / "run", "lock", "training"),
    ):
        pass
    # The refused process does not touch the other one's file.
    assert (tmp_path / "run" / "lock").read_text() == f"{holder.pid}\n"


@pytest.mark.parametrize(("end", "left"), [("communicate", []), ("kill", ["lock"])])
def test_the_lock_of_a_process_that_ended_is_free(tmp_path, holder, end, left):
    getattr(holder, end)()
    holder.wait()
    assert names(tmp_path / "run") == left
    with folder_lock(tmp_path / "run", "lock", "training"):
        assert (tmp_path / "run" / "lock").read_text() == f"{os.getpid()}\n"
    assert names(tmp_path / "run") == []


def test_a_lock_is_released_when_the_work_fails(tmp_path):
    for _ in range(2):
        with pytest.raises(ValueError, match="x"), folder_lock(tmp_path, "lock", "a"):
            raise ValueError("x")


def test_a_lock_file_that_was_removed_before_it_was_locked_does_not_count(
    tmp_path, monkeypatch
):
    """Its owner removes the file after another process has opened it."""
    real_flock, removed = fcntl.flock, []

    def flock(descriptor, operation):
        if not removed:
            removed.append(True)
            (tmp_path / "lock").unlink()
        real_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with folder_lock(tmp_path, "lock", "working"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_without_system_locks_the_work_is_done(tmp_path, monkeypatch, caplog):
    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    done = []
    with folder_lock(tmp_path, "lock", "working"):
        done.append(True)
    assert done
    assert "cannot be locked" in caplog.text


@pytest.mark.parametrize(
    "path",
    [
        "hdfs://host:9000/run",
        "file:///data/run",
        Path("gs://bucket/run"),
        "GS://bucket/run",
        "scheme+of-mine://bucket/run",
    ],
)
def test_remote_paths_are_refused_with_what_to_do(path):
    with pytest.raises(UserError, match=r"^received --data_dir .*: mount the storage"):
        check_local_path(path, "--data_dir")


@pytest.mark.parametrize(
    "path", ["run", "-", "", "/tmp/gs", "./gs://x", "run:/x", "a:b", Path("C:/run")]
)
def test_local_paths_are_accepted(path):
    check_local_path(path)


@pytest.mark.parametrize("path", ["läuf", "run [v1]", "跑", "a\\b"])
def test_paths_that_tensorflow_spells_alike_are_accepted(path):
    check_tensorflow_path(path)


def test_a_path_of_other_bytes_than_utf8_is_refused():
    with pytest.raises(UserError, match="not UTF-8 in this locale: set LC_ALL"):
        check_tensorflow_path(os.fsdecode(b"l\xe4uf"))


def test_only_names_that_match_are_found(tmp_path):
    for name in ("a.index", "b.index", "a.data", ".index"):
        (tmp_path / name).touch()
    found = sorted(path.name for path in matching(tmp_path, "*.index"))
    assert found == [".index", "a.index", "b.index"]
    assert matching(tmp_path / "nowhere", "*") == []


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UserError, match=r"^cannot list .*Permission.*chmod u\+r"):
        matching(tmp_path, "*")


@pytest.mark.parametrize("name", ["a", "a b.txt", "...", ".a", "a[1]"])
def test_a_name_is_a_file_in_the_folder(name):
    assert path_inside("folder", name) == Path("folder", name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "b/a", "/etc/passwd", "a/", "./a", "a\0", 1, None, ["a"]],
)
def test_a_name_that_leads_to_another_folder_is_refused(name):
    with pytest.raises(UserError, match=r"in folder names the file .*expected a name"):
        path_inside("folder", name)


def load(path):
    return load_description(
        path, lambda values: values["name"], expected_format=3, advice="start anew"
    )


def test_a_description_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(description_text({"name": "Größe", "format": 3}), encoding="utf-8")
    assert load(path) == "Größe"


def test_a_file_of_another_program_is_named_so(tmp_path):
    (tmp_path / "file.json").write_text('{"hidden_size": 8}')
    with pytest.raises(UserError, match=r"another program wrote it, .*; start"):
        load(tmp_path / "file.json")


def test_a_file_that_is_not_there_gives_none(tmp_path):
    assert load(tmp_path / "file.json") is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *((content, "") for content in ("", "{", "[]", "null", '{"format": 3}')),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"format": ' + "3" * 5000 + "}", "a number has 5,000 digits"),
        (" " * (MAX_BYTES + 1), "larger than"),
    ],
    ids=range(9),
)
def test_a_damaged_file_is_refused_with_advice(tmp_path, content, reason):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(UserError, match=rf"file\.json is damaged .*{reason}.*; start"):
        load(path)


def test_a_pipe_in_place_of_a_file_is_damage(tmp_path):
    os.mkfifo(tmp_path / "file.json")
    with pytest.raises(UserError, match="not a regular file"):
        load(tmp_path / "file.json")


def test_another_format_is_refused_with_advice(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"name": "a", "format": 4}))
    with pytest.raises(UserError, match=r"format 4, expected 3: .*; start anew"):
        load(path)


def test_differences_are_those_of_the_names_asked_for():
    there = {"a": 1, "b": "x", "c": 3}
    assert differences(there, {"b": "y", "a": 1, "d": None, "e": 2}) == [
        "b is 'x' there, 'y' now",
        "e is None there, 2 now",
    ]
