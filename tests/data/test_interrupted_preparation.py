"""A preparation that was killed anywhere is done again, with the same bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from t2t_repro.data import output_files, shard_writer
from t2t_repro.data.prepare import prepare
from t2t_repro.data.problem import Problem, RepeatedPair, Vocabulary
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings

SETTINGS = PrepareSettings(num_shards=3, drop_duplicates=True, max_pair_length=6)
COUNT = 95


class Numbers(Problem):
    """Pairs of digits, some repeated, some empty, some too long, some twice."""

    name = "numbers"
    splits = ("train", "dev")
    vocabulary = Vocabulary(kind="symbols", symbols=tuple("0123456789"))

    def __init__(self, fails_at=None, fail=None):
        self.fails_at, self.fail = fails_at, fail

    def pairs(self, split, tmp_dir):
        for number in range(COUNT if split == "train" else 4):
            if (split, number) == self.fails_at:
                self.fail()
            yield self.pair(number)

    def pair(self, number):
        source = " ".join(str(number % 61))
        target = "" if number % 17 == 5 else " ".join(str(number % 61 * 7))
        if number % 19 == 3:
            target = f"{target} 1 1 1 1 1 1"
        return RepeatedPair(source, target, 2) if number % 3 == 1 else (source, target)


@pytest.fixture(scope="module", autouse=True)
def small_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_writer, "_PAIRS_AT_A_TIME", 5)
        yield


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(small_batches, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    prepare(Numbers(), folder, None, SETTINGS)
    return contents(folder)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("fails_at", [("dev", 2), ("train", 0), ("train", 94)])
def test_an_interrupted_preparation_leaves_nothing(tmp_path, fails_at):
    folder = tmp_path / "data"
    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(fails_at, interrupt), folder, None, SETTINGS)
    assert not folder.exists()


FINAL_NAMES = 7  # three shards, one of dev, two texts, a vocabulary; then the manifest


@pytest.mark.parametrize(
    ("num_shards", "named"),
    [(3, 0), (3, 1), (3, FINAL_NAMES - 1), (3, FINAL_NAMES), (2, 1), (2, 4)],
)
def test_a_preparation_killed_while_files_get_their_names_is_done_again(
    tmp_path, undisturbed, monkeypatch, num_shards, named
):
    folder = tmp_path / "data"
    replaced = []

    def replace_some(source, target):
        if Path(target).parent == folder:
            if len(replaced) == named:
                raise KeyboardInterrupt
            replaced.append(target)
        _replace(source, target)

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(output_files.os, "replace", replace_some)
        prepare(Numbers(), folder, None, SETTINGS.replace(num_shards=num_shards))
    assert not (folder / "numbers.manifest.json").exists()
    prepare(Numbers(), folder, None, SETTINGS)
    assert contents(folder) == undisturbed


def test_a_file_that_replaces_one_of_a_killed_preparation_is_kept(
    tmp_path, monkeypatch
):
    folder = tmp_path / "data"

    def replace_vocabulary(source, target):
        _replace(source, target)
        if Path(target).name == "numbers.symbols":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(output_files.os, "replace", replace_vocabulary)
        prepare(Numbers(), folder, None, SETTINGS)
    (folder / "numbers.symbols").write_bytes(b"precious")
    with pytest.raises(UserError, match=r"numbers\.symbols\) but no"):
        prepare(Numbers(), folder, None, SETTINGS)
    assert (folder / "numbers.symbols").read_bytes() == b"precious"


_replace = os.replace


def test_a_killed_preparation_is_done_again(tmp_path, undisturbed, caplog):
    killed = tmp_path / "killed"

    def kill():
        """Keep what the process leaves if it ends here."""
        shutil.copytree(tmp_path / "data", killed)
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(("train", 73), kill), tmp_path / "data", None, SETTINGS)
    left = contents(killed)
    left.pop("numbers.lock")
    assert left
    assert all(name.endswith(".incomplete") for name in left)
    caplog.set_level("INFO", "t2t_repro")
    prepare(Numbers(), killed, None, SETTINGS)
    assert "an earlier preparation was interrupted and is done again" in caplog.text
    assert contents(killed) == undisturbed
