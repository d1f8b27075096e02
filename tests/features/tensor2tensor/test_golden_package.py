"""A package makes the same of its text and sets here and in tensor2tensor itself."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from t2t_repro import catalogue
from t2t_repro.settings.hparams import HParams
from tests.support.old_packages import old_packages

PACKAGE = "t2t_package"


@pytest.fixture
def golden(repository, tmp_path):
    """Import the package, and write the files of its text."""
    folder = repository / "tests" / "golden"
    golden = json.loads((folder / f"{PACKAGE}.json").read_text(encoding="utf-8"))
    for name, lines in golden["files"].items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        content = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    (tmp_path / "data").mkdir()
    package = tmp_path / "users_old_package"
    shutil.copytree(folder / PACKAGE, package)
    with old_packages(tmp_path):
        catalogue.load(package)
        yield golden


def test_the_pairs_of_every_split_are_tensor2tensors(golden, tmp_path):
    found = {}
    for name in golden["pairs"]:
        problem = catalogue.problem(name).in_folder(tmp_path / "data")
        found[name] = {
            split: sorted(map(list, problem.pairs(split, tmp_path)))
            for split in problem.splits
        }
    # Of tokens, tensor2tensor's shards have only those that its vocabulary has.
    known = {"UNK", "one", "two", "eins"}
    found["own_tokens"] = {
        split: sorted(
            [" ".join(w if w in known else "UNK" for w in x.split()) for x in pair]
            for pair in pairs
        )
        for split, pairs in found["own_tokens"].items()
    }
    assert found == golden["pairs"]


def test_the_values_of_the_sets_are_tensor2tensors(golden):
    for name, theirs in golden["sets"].items():
        made = catalogue.hparams(name).values()
        shared = theirs.keys() & {*HParams.names()} - {"pos"}
        assert len(shared) > 30
        assert {key: made[key] for key in shared} == {
            key: theirs[key] for key in shared
        }
