"""The folder of prepared data: files of others, full disks, locks and errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_repro.data import output_files
from t2t_repro.data import prepare as prepare_module
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.problem import PrepareSettings, ReversedProblem
from t2t_repro.errors import UserError
from tests.data.test_prepare import SETTINGS, Digits, Numbers, contents
from tests.support.file_limit import largest_file


class BreaksInTheMiddle(Numbers):
    def pairs(self, split, tmp_dir):
        yield from self.text[split]
        if split == "dev":
            raise UserError("the text broke")


@pytest.mark.parametrize("there", [{"mine.txt": b"keep"}, {}])
def test_an_error_in_the_middle_keeps_the_folder_and_earlier_files(tmp_path, there):
    for name, content in there.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match="the text broke"):
        prepare(BreaksInTheMiddle(), tmp_path, settings=SETTINGS)
    assert contents(tmp_path) == there


def test_leftovers_of_a_killed_run_are_cleared(tmp_path):
    (tmp_path / "numbers-train-00000-of-00009.incomplete").write_text("half")
    others = {
        "numbers-unshuffled-dev-00000-of-00001.incomplete",
        "numbersign.incomplete",
    }
    for name in others:
        (tmp_path / name).write_text("not ours")
    prepare(Numbers(), tmp_path, settings=SETTINGS)
    left = {name for name in contents(tmp_path) if name.endswith(".incomplete")}
    assert left == others


TENSOR2TENSORS = [f"digits-train-0000{number}-of-00004" for number in range(4)]


@pytest.mark.parametrize(
    "names",
    [
        TENSOR2TENSORS,
        [TENSOR2TENSORS[0]],
        ["digits.inputs.model"],
        ["digits.symbols"],
        ["digits-dev.targets.txt"],
    ],
)
@pytest.mark.parametrize("problem", [Digits(), ReversedProblem(Digits())])
def test_files_that_another_program_made_are_refused_and_kept(tmp_path, names, problem):
    for name in names:
        (tmp_path / name).write_text(f"precious {name}")
    before = contents(tmp_path)
    with pytest.raises(UserError) as caught:
        open_or_prepare(problem, tmp_path)
    assert min(names) in str(caught.value)
    assert "no digits.manifest.json" in str(caught.value)
    assert "Give another data_dir" in str(caught.value)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("content", ["{}", '{"files": 3}', "[" * 100_000, "{"])
def test_a_leftover_that_is_no_manifest_makes_no_file_ours(tmp_path, content):
    (tmp_path / "digits-dev-00000-of-00001").write_text("theirs")
    (tmp_path / "digits.manifest.json.incomplete").write_text(content)
    before = contents(tmp_path)
    with pytest.raises(UserError, match="another program made them"):
        prepare(Digits(), tmp_path)
    assert contents(tmp_path) == before


def test_files_of_other_problems_and_vocabularies_are_no_hindrance(tmp_path):
    names = ["vocab.digits.8192.subwords", "digits2-dev-00000-of-00001", "digits.txt"]
    for name in names:
        (tmp_path / name).write_text(name)
    prepare(Digits(), tmp_path)
    assert [(tmp_path / name).read_text() for name in names] == names


class MakesAFile(Digits):
    """A problem beside which another program makes a file of its name."""

    name = "digits"

    def __init__(self, path: Path) -> None:
        self.path = path

    def pairs(self, split, tmp_dir):
        self.path.write_text("precious")
        yield "1 2", "2"


def test_a_file_that_another_program_makes_meanwhile_is_kept(tmp_path):
    path = tmp_path / "digits-dev-00000-of-00001"
    with pytest.raises(UserError, match=f"{path.name}.* but no"):
        prepare(MakesAFile(path), tmp_path)
    assert contents(tmp_path) == {path.name: b"precious"}


class LongTrain(Digits):
    """A problem whose training shards are longer than everything else."""

    splits = ("train", "dev")

    def pairs(self, split, tmp_dir):
        for _ in range(9_000 if split == "train" else 1):
            yield "1", "2"


@pytest.mark.parametrize(
    ("problem", "size", "made_before"),
    [
        (LongTrain, 9_000, True),
        # The manifest is the only file of more than 500 bytes.
        (Digits, 500, False),
    ],
)
def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path, problem, size, made_before
):
    folder = tmp_path / "data"
    if made_before:
        folder.mkdir()
        (folder / "mine.txt").write_text("keep")
    with largest_file(size), pytest.raises(UserError) as caught:
        prepare(problem(), folder)
    assert str(caught.value) == f"writing to {folder} failed: File too large"
    assert folder.exists() == made_before
    if made_before:
        assert contents(folder) == {"mine.txt": b"keep"}


def test_data_that_another_process_prepares_is_refused(tmp_path):
    message = rf"another process \(pid {os.getpid()}\) is preparing data in {tmp_path}"
    with output_files.locked_folder(tmp_path, "digits"):
        with pytest.raises(UserError, match=message):
            prepare(Digits(), tmp_path)
        # A problem with other files can be prepared at the same time.
        prepare(Numbers(), tmp_path, settings=SETTINGS)
    assert not [name for name in contents(tmp_path) if name.endswith(".lock")]


def test_data_that_another_process_has_just_finished_is_not_written_again(
    tmp_path, monkeypatch
):
    lock, finished = prepare_module.locked_folder, {}

    @contextlib.contextmanager
    def locked_late(folder: Path, prefix: str) -> Iterator[None]:
        monkeypatch.setattr(prepare_module, "locked_folder", lock)
        prepare(Digits(), folder)
        finished.update({path: path.stat().st_mtime_ns for path in folder.iterdir()})
        with lock(folder, prefix):
            yield

    monkeypatch.setattr(prepare_module, "locked_folder", locked_late)
    prepare(Digits(), tmp_path)
    assert finished == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match="num_shards is 10 there, 3 now"):
        prepare(Digits(), tmp_path, settings=PrepareSettings(num_shards=3))


def test_a_data_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(UserError, match=r"File exists|Not a directory"):
        prepare(Numbers(), tmp_path / "data", settings=SETTINGS)
