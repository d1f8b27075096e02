"""The folder for downloads reaches every method that reads a problem's text."""

from __future__ import annotations

from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.problem import PrepareSettings
from tests.data.test_prepare import Numbers


class Downloads(Numbers):
    """Numbers that records where each method would download to."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: set[tuple[str, object]] = set()

    def pairs(self, split, tmp_dir):
        self.calls.add((f"pairs of {split}", tmp_dir))
        return super().pairs(split, tmp_dir)

    def check(self, tmp_dir):
        self.calls.add(("check", tmp_dir))

    def source_identities(self, tmp_dir):
        self.calls.add(("source_identities", tmp_dir))
        return super().source_identities(tmp_dir)


METHODS = ("pairs of train", "pairs of dev", "pairs of test", "check")
SETTINGS = PrepareSettings(vocab_size=330, num_shards=3)


def test_preparing_reads_from_the_given_folder(tmp_path):
    problem = Downloads()
    prepare(problem, tmp_path / "data", tmp_path / "tmp", SETTINGS)
    methods = (*METHODS, "source_identities")
    assert problem.calls == {(method, tmp_path / "tmp") for method in methods}


def test_opening_compares_with_the_given_folder(tmp_path):
    given = {"vocab_size": 330}
    folders = tmp_path / "data", given, tmp_path / "tmp"
    open_or_prepare(Downloads(), *folders)
    problem = Downloads()
    open_or_prepare(problem, *folders)
    assert problem.calls == {("source_identities", tmp_path / "tmp")}


def test_opening_unprepared_data_reads_from_the_given_folder(tmp_path):
    problem = Downloads()
    open_or_prepare(problem, tmp_path / "data", {"vocab_size": 330}, tmp_path / "tmp")
    assert {folder for _, folder in problem.calls} == {tmp_path / "tmp"}
