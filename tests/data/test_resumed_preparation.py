"""A preparation that was killed anywhere ends with the bytes of an undisturbed one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.data import output_files, reading_progress, shard_writer, worker_pool
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.data.repeated_pair import RepeatedPair
from t2t_repro.errors import UserError
from t2t_repro.progress import Progress
from t2t_repro.settings.prepare_settings import PrepareSettings

SETTINGS = PrepareSettings(num_shards=3, drop_duplicates=True, max_pair_length=6)
COUNT = 95


class Numbers(Problem):
    """Pairs of digits, some repeated, some empty, some too long, some twice."""

    name = "numbers"
    splits = ("train", "dev")
    vocabulary = Vocabulary(kind="symbols", symbols=tuple("0123456789"))

    def __init__(self, fails_at=None, fail=None, change="", count=COUNT):
        self.fails_at, self.fail, self.change = fails_at, fail, change
        self.count = count

    def pairs(self, split, tmp_dir):
        for number in range(self.count if split == "train" else 4):
            if (split, number) == self.fails_at:
                self.fail()
            yield self.pair(number)

    def pair(self, number):
        source = " ".join(str(number % 61))
        target = "" if number % 17 == 5 else " ".join(str(number % 61 * 7))
        if number % 19 == 3:
            target = f"{target} 1 1 1 1 1 1"
        if number == 40:
            target += self.change
        return RepeatedPair(source, target, 2) if number % 3 == 1 else (source, target)


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        make_pieces_small(patch.setattr)
        yield


def make_pieces_small(setattr_):
    setattr_(shard_writer, "_PAIRS_AT_A_TIME", 5)
    setattr_(shard_writer, "_BATCHES_PER_PIECE", 2)
    setattr_(worker_pool, "_ITEMS_BEFORE_WORKERS", 1)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(small_pieces, tmp_path_factory):
    """Return the files of a preparation that was not interrupted."""
    folder = tmp_path_factory.mktemp("undisturbed")
    prepare(Numbers(), folder, None, SETTINGS)
    return contents(folder)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("number", [0, 3, 10, 51, 94])
def test_an_interrupted_preparation_is_resumed(tmp_path, undisturbed, number, caplog):
    folder = tmp_path / "data"
    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(("train", number), interrupt), folder, None, SETTINGS)
    assert (folder / "numbers.unfinished").exists()
    caplog.set_level("INFO", "t2t_repro")
    prepare(Numbers(), folder, None, SETTINGS)
    kept = number // 10 * 10
    assert (f"resuming after {kept} training pairs" in caplog.text) == (kept > 0)
    assert contents(folder) == undisturbed


def test_an_interrupted_preparation_can_be_interrupted_again(tmp_path, undisturbed):
    folder = tmp_path / "data"
    for number in (15, 35, 12, 80):
        with contextlib.suppress(KeyboardInterrupt):
            prepare(Numbers(("train", number), interrupt), folder, None, SETTINGS)
    prepare(Numbers(), folder, None, SETTINGS)
    assert contents(folder) == undisturbed


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_shards_that_were_finished_are_kept(tmp_path, undisturbed, monkeypatch, shard):
    folder, written = tmp_path / "data", []
    write_shard = shard_writer.write_shard

    def record(path, segments, seed):
        written.append(path.name)
        write_shard(path, segments, seed)

    def stop(path, segments, seed):
        if len(written) == shard:
            path.write_bytes(b"half")
            raise KeyboardInterrupt
        record(path, segments, seed)

    monkeypatch.setattr(shard_writer, "write_shard", stop)
    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(), folder, None, SETTINGS)
    written.clear()
    monkeypatch.setattr(shard_writer, "write_shard", record)
    prepare(Numbers(), folder, None, SETTINGS)
    assert written == [f"shard-{number:05d}" for number in range(shard, 3)]
    assert contents(folder) == undisturbed


@pytest.mark.parametrize("name", ["piece-00002", "shard-00001"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_damaged_parts_are_written_again(
    tmp_path, undisturbed, monkeypatch, name, damage
):
    folder = tmp_path / "data"
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        # Interrupted when all shards are written and none has its name.
        patch.setattr(os, "replace", replace_until_shards)
        prepare(Numbers(), folder, None, SETTINGS)
    path = folder / "numbers.unfinished" / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-1] + (b"" if damage == "cut" else b"?"))
    prepare(Numbers(), folder, None, SETTINGS)
    assert contents(folder) == undisturbed


def test_a_folder_left_by_a_kill_at_the_very_end_is_removed(tmp_path, undisturbed):
    # Killed when all files had their names.
    folder = tmp_path / "data"
    prepare(Numbers(), folder, None, SETTINGS)
    left = folder / "numbers.unfinished"
    left.mkdir()
    (left / "piece-00000").write_bytes(b"left")
    prepare(Numbers(), folder, None, SETTINGS)
    assert contents(folder) == undisturbed
    left.mkdir()
    open_or_prepare(Numbers(), folder)
    assert contents(folder) == undisturbed


FINAL_NAMES = 7  # three shards, one of dev, two texts, a vocabulary; then the manifest


@pytest.mark.parametrize("named", range(FINAL_NAMES + 1))
@pytest.mark.parametrize("num_shards", [3, 2])
def test_a_preparation_killed_while_files_get_their_names_is_resumed(
    tmp_path, undisturbed, monkeypatch, named, num_shards
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


def test_pieces_of_targets_that_are_written_otherwise_are_not_used(tmp_path, caplog):
    class Doubled(Numbers):
        name = "numbers"

        def encode_target(self, target):
            return f"{target} 1" if target == "2 1" else target

    folder = tmp_path / "data"
    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(("train", 90), interrupt), folder, None, SETTINGS)
    caplog.set_level("INFO", "t2t_repro")
    prepare(Doubled(), folder, None, SETTINGS)
    # The targets of the pairs 3 and 64 differ; pair 3 is too long either way.
    assert "resuming after 60 training pairs" in caplog.text
    prepare(Doubled(), tmp_path / "undisturbed", None, SETTINGS)
    assert contents(folder) == contents(tmp_path / "undisturbed")


def test_units_of_an_earlier_process_do_not_count_for_the_rate(tmp_path, monkeypatch):
    folder, calls = tmp_path / "data", []

    class Counts(Progress):
        def advance(self, count=1):
            calls.append(("advance", count))
            super().advance(count)

        def skip(self, count=1):
            calls.append(("skip", count))
            super().skip(count)

    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(("train", 90), interrupt), folder, None, SETTINGS)
    monkeypatch.setattr(reading_progress, "Progress", Counts)
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(os, "replace", replace_until_shards)
        prepare(Numbers(), folder, None, SETTINGS)
    encoding = [("skip", 10)] * 9 + [("advance", 5)]
    assert calls == encoding + [("advance", 1)] * 3
    calls.clear()
    prepare(Numbers(), folder, None, SETTINGS)
    assert calls == [("skip", 10)] * 9 + [("skip", 5)] + [("skip", 1)] * 3


_replace = os.replace


def replace_until_shards(source, target):
    if Path(source).name.startswith("shard-"):
        raise KeyboardInterrupt
    _replace(source, target)


def test_pieces_of_other_text_are_not_used(tmp_path, caplog):
    # The problem does not identify its text, so only the text itself shows it.
    folder = tmp_path / "data"
    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(("train", 90), interrupt), folder, None, SETTINGS)
    changed = Numbers(change=" 1")
    caplog.set_level("INFO", "t2t_repro")
    prepare(changed, folder, None, SETTINGS)
    assert "resuming after 40 training pairs" in caplog.text
    prepare(changed, tmp_path / "undisturbed", None, SETTINGS)
    assert contents(folder) == contents(tmp_path / "undisturbed")


def test_shards_of_a_shorter_text_are_not_used(tmp_path, undisturbed, monkeypatch):
    folder = tmp_path / "data"
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(os, "replace", replace_until_shards)
        prepare(Numbers(count=90), folder, None, SETTINGS)  # nine whole pieces
    prepare(Numbers(), folder, None, SETTINGS)
    assert contents(folder) == undisturbed


def test_pieces_of_other_settings_are_not_used(tmp_path):
    folder = tmp_path / "data"
    with contextlib.suppress(KeyboardInterrupt):
        prepare(Numbers(("train", 90), interrupt), folder, None, SETTINGS)
    other = SETTINGS.replace(max_pair_length=4)
    prepare(Numbers(), folder, None, other)
    prepare(Numbers(), tmp_path / "undisturbed", None, other)
    assert contents(folder) == contents(tmp_path / "undisturbed")


@pytest.mark.parametrize("num_workers", [2, 3])
def test_the_number_of_workers_does_not_change_a_byte(
    tmp_path, undisturbed, num_workers
):
    folder = tmp_path / "data"
    prepare(Numbers(), folder, None, SETTINGS, num_workers=num_workers)
    assert contents(folder) == undisturbed


KILLED = """
import os, signal, sys
from pathlib import Path
from t2t_repro.data.prepare import prepare
from tests.data.test_resumed_preparation import Numbers, SETTINGS, make_pieces_small

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    make_pieces_small(setattr)
    prepare(Numbers(("train", 73), kill), Path(sys.argv[1]), None, SETTINGS,
            num_workers=2)
"""


def test_a_killed_preparation_is_resumed_and_leaves_no_process(tmp_path, undisturbed):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    root = Path(__file__).resolve().parents[2]
    # The pipe closes when the last process that inherited it has ended.
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data")],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        timeout=300,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    left = contents_of_unfinished(tmp_path / "data")
    assert "piece-00000" in left
    prepare(Numbers(), tmp_path / "data", None, SETTINGS)
    assert contents(tmp_path / "data") == undisturbed


def contents_of_unfinished(folder: Path) -> set[str]:
    return {path.name for path in (folder / "numbers.unfinished").iterdir()}
