from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.errors import UserError
from t2t_repro.local_paths import (
    check_local_path,
    check_tensorflow_path,
    matching,
    path_inside,
)


@pytest.mark.parametrize(
    "path",
    [
        "gs://bucket/run",
        "s3://bucket/run",
        "hdfs://host:9000/run",
        "https://example.org/run",
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


def test_an_umlaut_is_refused_where_the_locale_has_none():
    program = (
        "import sys\n"
        "from t2t_repro.errors import UserError\n"
        "from t2t_repro.local_paths import check_tensorflow_path\n"
        "try:\n"
        "    check_tensorflow_path(sys.argv[1])\n"
        "except UserError as error:\n"
        "    print(ascii(str(error)))\n"
    )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", program, "läuf"],
        env=os.environ | ascii_only,
        capture_output=True,
        check=True,
    )
    assert b"not UTF-8 in this locale" in ended.stdout


def test_only_names_that_match_are_found(tmp_path):
    for name in ("a.index", "b.index", "a.data", ".index"):
        (tmp_path / name).touch()
    found = sorted(path.name for path in matching(tmp_path, "*.index"))
    assert found == [".index", "a.index", "b.index"]


def test_a_folder_that_does_not_exist_has_no_files(tmp_path):
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
