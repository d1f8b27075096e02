"""Packages of the user are remembered, and their errors are told from our own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from t2t_repro.errors import UsageError
from t2t_repro.user_packages import as_user_error, is_remembered, remember


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "t2t_repro" / "packages.json"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    return folder


@pytest.fixture
def remembered(configuration, package):
    remember(package)
    assert is_remembered(package)
    return configuration


def test_a_package_is_remembered_by_its_absolute_path(
    remembered, package, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert is_remembered("package")
    (tmp_path / "elsewhere" / "package").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert not is_remembered("package")


def test_another_package_does_not_push_out_the_first(remembered, package, tmp_path):
    (tmp_path / "second").mkdir()
    remember(tmp_path / "second")
    assert is_remembered(package)
    assert is_remembered(tmp_path / "second")


def test_a_remembered_path_that_became_a_link_is_another_package(
    remembered, package, tmp_path
):
    package.rename(tmp_path / "moved")
    (tmp_path / "foreign").mkdir()
    package.symlink_to(tmp_path / "foreign")
    assert not is_remembered(package)


def test_without_a_variable_the_home_has_the_file(tmp_path, monkeypatch, package):
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # the standard ignores it
    monkeypatch.setenv("HOME", str(tmp_path))
    remember(package)
    assert (tmp_path / ".config" / "t2t_repro" / "packages.json").is_file()


def test_only_the_user_can_read_or_change_the_file(configuration, package):
    before = os.umask(0)
    try:
        remember(package)
    finally:
        os.umask(before)
    assert configuration.stat().st_mode & 0o077 == 0
    assert configuration.parent.stat().st_mode & 0o077 == 0


def let_others_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


@pytest.mark.parametrize("place", ["file", "folder", "package"])
def test_what_everybody_can_write_is_not_trusted(remembered, package, place):
    places = {"file": remembered, "folder": remembered.parent, "package": package}
    let_others_write(places[place])
    assert not is_remembered(package)


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_link_in_place_of_the_file_is_not_trusted(
    remembered, package, tmp_path, place
):
    linked = remembered if place == "file" else remembered.parent
    linked.rename(tmp_path / "foreign")
    linked.symlink_to(tmp_path / "foreign")
    assert not is_remembered(package)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_the_file_of_another_user_is_not_trusted(remembered, package, monkeypatch):
    os.chown(remembered, 12345, 12345)
    assert not is_remembered(package)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 200_000,
        '{"format": 1, "packages": 7}',
        '{"format": 1, "packages": [7]}',
        '{"format": 99, "packages": []}',
    ],
)
def test_a_damaged_file_counts_as_empty_and_is_replaced(remembered, package, content):
    remembered.write_text(content)
    assert not is_remembered(package)
    remember(package)
    assert is_remembered(package)


def test_a_folder_that_cannot_be_written_to_is_no_error(
    configuration, package, monkeypatch
):
    configuration.parent.parent.write_text("a file in place of the folder")
    remember(package)
    assert not is_remembered(package)


def test_a_path_that_is_no_unicode_is_no_error(configuration, tmp_path):
    package = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    package.mkdir()
    remember(package)
    assert not is_remembered(package)


def test_an_error_that_the_user_can_correct_stays_as_it_is():
    error = UsageError("wrong")
    assert as_user_error(error) is error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 3.0 GiB for an array"),
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("libx.so: failed to map segment from shared object"),
        ImportError(f"libx.so: cannot open it: {os.strerror(errno.ENOMEM)}"),
        RuntimeError("can't start new thread"),
    ],
)
def test_errors_of_a_machine_without_memory_say_so(error):
    message = str(as_user_error(error))
    assert message.startswith("out of memory: close other programs")
    assert message.endswith(f"The system: {str(error) or 'MemoryError'}")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file", "a.txt"), "a.txt: No such file"),
        (OSError("gone"), "gone"),
    ],
)
def test_errors_of_files_get_a_message(error, message):
    assert str(as_user_error(error)) == message


def test_other_errors_are_those_of_the_program():
    assert as_user_error(ValueError("a bug")) is None
