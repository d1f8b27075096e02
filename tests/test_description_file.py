from __future__ import annotations

import json
import os

import pytest

from t2t_repro.errors import UserError
from t2t_repro.files import (
    MAX_BYTES,
    description_text,
    differences,
    load_description,
)


def load(path):
    return load_description(
        path, lambda values: values["name"], expected_format=3, advice="start anew"
    )


def test_a_description_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(description_text({"name": "Größe", "format": 3}), encoding="utf-8")
    assert load(path) == "Größe"


def test_a_file_that_is_not_there_gives_none(tmp_path):
    assert load(tmp_path / "file.json") is None


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 3}'])
def test_a_damaged_file_is_refused_with_advice(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"file\.json is damaged .*; start anew"):
        load(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"format": ' + "3" * 5000 + "}", "a number has 5,000 digits"),
        (" " * (MAX_BYTES + 1), "larger than"),
    ],
    ids=["brackets", "braces", "digits", "bytes"],
)
def test_absurd_content_is_damage(tmp_path, content, reason):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(UserError, match=rf"file\.json is damaged .*{reason}"):
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
