from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from t2t_repro.data.problem import Problem
from t2t_repro.data.request import PairFiles, requested_settings
from t2t_repro.errors import UsageError, UserError


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("left", "right"), [(3, 5), (5, 3), (4, 3)])
def test_sides_of_different_length_are_refused_with_both_counts(tmp_path, left, right):
    source = written(tmp_path / "a", b"x\n" * left)
    target = written(tmp_path / "b", b"y\n" * right)
    with pytest.raises(UserError, match=f"received {left} lines .* and {right} lines"):
        list(PairFiles(source, target).pairs())


def test_pairs_are_the_lines_side_by_side(tmp_path):
    source = written(tmp_path / "a", b"1\n2\n")
    target = written(tmp_path / "b", gzip.compress(b"x\ny\n"))
    pairs = list(PairFiles(source, target).pairs())
    assert pairs == [("1", "x"), ("2", "y")]


def test_a_tab_within_a_line_of_two_files_is_text(tmp_path):
    source = written(tmp_path / "a", b"1\t2\n")
    assert list(PairFiles(source, source).pairs()) == [("1\t2", "1\t2")]


def test_columns_of_one_file_are_the_two_sides(tmp_path):
    path = written(tmp_path / "a.tsv", b"1\tx\r\n\ty\n")
    assert list(PairFiles(path).pairs()) == [("1", "x"), ("", "y")]


@pytest.mark.parametrize(("line", "columns"), [(b"alone", 1), (b"a\tb\tc", 3)])
def test_a_line_without_two_columns_is_refused_by_its_number(tmp_path, line, columns):
    path = written(tmp_path / "a.tsv", b"1\tx\n" + line + b"\n")
    with pytest.raises(UserError, match=f"a.tsv:2: received {columns} column"):
        list(PairFiles(path).pairs())


def test_settings_of_an_unknown_name_or_out_of_range_are_refused():
    with pytest.raises(UsageError, match="Did you mean num_shards"):
        requested_settings(Problem(), {"num_shard": 2})
    with pytest.raises(UserError, match="num_shards: received 0, expected at least 1"):
        requested_settings(Problem(), {"num_shards": 0})
