from __future__ import annotations

from pathlib import Path

import pytest

from t2t_repro import catalogue
from t2t_repro.data.request import PairFiles
from t2t_repro.errors import UsageError, UserError


def files(folder: Path, pairs: list[tuple[str, str]], name: str = "text") -> PairFiles:
    path = folder / f"{name}.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return PairFiles(path)


def numbered(count: int) -> list[tuple[str, str]]:
    return [(f"source {n}", f"target {n}") for n in range(count)]


def text_pairs(**splits: PairFiles):
    return catalogue.problem("text_pairs").with_files(splits)


def test_given_splits_are_read_unchanged(tmp_path):
    train, dev = files(tmp_path, numbered(5), "a"), files(tmp_path, numbered(2), "b")
    problem = text_pairs(train=train, dev=dev)
    assert problem.splits == ("train", "dev")
    assert list(problem.pairs("train", None)) == numbered(5)
    assert list(problem.pairs("dev", None)) == numbered(2)


@pytest.mark.parametrize("with_dev", [True, False])
def test_equal_sources_and_targets_are_reported(tmp_path, caplog, with_dev):
    copies = files(tmp_path, [(f"line {n}", f"line {n}") for n in range(40)], "copies")
    dev = {"dev": files(tmp_path, numbered(3), "dev")} if with_dev else {}
    text_pairs(train=copies, **dev).check(None)
    warnings = [line for line in caplog.messages if "is equal to its target" in line]
    assert [line.partition(":")[0] for line in warnings] == ["train"]


def test_without_dev_files_the_test_split_is_still_that_of_the_test_files(tmp_path):
    train, test = files(tmp_path, numbered(40), "a"), files(tmp_path, numbered(3), "b")
    problem = text_pairs(train=train, test=test)
    assert problem.splits == ("train", "dev", "test")
    assert list(problem.pairs("test", None)) == numbered(3)


def test_one_in_twenty_is_held_out_without_dev_files(tmp_path):
    problem = text_pairs(train=files(tmp_path, numbered(200)))
    dev = list(problem.pairs("dev", None))
    train = list(problem.pairs("train", None))
    assert len(dev) == 10
    assert sorted([*dev, *train]) == sorted(numbered(200))


def test_a_held_out_source_is_not_trained_on(tmp_path):
    pairs = [(f"source {n % 60}", f"target {n}") for n in range(600)]
    problem = text_pairs(train=files(tmp_path, pairs))
    dev = {source for source, _ in problem.pairs("dev", None)}
    train = {source for source, _ in problem.pairs("train", None)}
    assert len(dev) == 3
    assert dev & train == set()


def test_a_pair_with_an_empty_side_is_never_held_out(tmp_path):
    pairs = [*numbered(40), *((f"alone {n}", "") for n in range(360))]
    problem = text_pairs(train=files(tmp_path, pairs))
    dev = list(problem.pairs("dev", None))
    assert len(dev) == 2
    assert all(target for _, target in dev)


def test_the_check_finds_an_error_in_any_split(tmp_path):
    good = files(tmp_path, numbered(3))
    broken = tmp_path / "broken"
    broken.write_bytes(b"a\tb\nc\xff\td\n")
    problem = text_pairs(train=good, dev=good, test=PairFiles(broken))
    with pytest.raises(UserError, match="broken:2"):
        problem.check(None)


def test_source_identities_depend_on_the_content_and_not_on_the_folder(tmp_path):
    problem = text_pairs(train=files(tmp_path, numbered(3)))
    (tmp_path / "elsewhere").mkdir()
    moved = text_pairs(train=files(tmp_path / "elsewhere", numbered(3)))
    changed = text_pairs(train=files(tmp_path / "elsewhere", numbered(4), "c"))
    here = problem.source_identities(None)
    assert list(here) == ["train_tsv", "held_out"]
    assert moved.source_identities(None) == here
    assert changed.source_identities(None) != here


def test_missing_files_are_a_usage_error():
    with pytest.raises(UsageError, match="train_source and train_target"):
        catalogue.problem("text_pairs").check(None)


def from_lists(*arguments, **splits):
    return type(catalogue.problem("text_pairs")).from_lists(*arguments, **splits)


def test_lists_in_memory_are_read_unchanged():
    problem = from_lists(
        ["a", "b"], ["c", "d"], dev=(["e"], ["f"]), test=(["g"], ["h"])
    )
    assert problem.splits == ("train", "dev", "test")
    assert list(problem.pairs("train", None)) == [("a", "c"), ("b", "d")]
    assert list(problem.pairs("dev", None)) == [("e", "f")]
    assert list(problem.pairs("test", None)) == [("g", "h")]


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(UserError, match="2 lines in the sources and 1 in the targets"):
        from_lists(["a", "b"], ["c"]).check(None)


def test_a_split_without_targets_is_refused():
    with pytest.raises(UserError, match=r"received dev with 1 list\(s\), expected two"):
        from_lists(["a", "b"], ["c", "d"], dev=(["e"],))


def test_other_text_in_lists_is_noticed():
    first, second = (
        from_lists(["a", "b"], [target, "d"]).source_identities(None)["train_pairs"]
        for target in ("c", "x")
    )
    assert first != second
