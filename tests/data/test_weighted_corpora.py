from __future__ import annotations

from collections import Counter

import pytest

from t2t_repro.data.file_problem import TextPairProblem
from t2t_repro.data.prepare import prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.request import PairCorpora, PairFiles
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings
from tests.support.corpus import examples_in

SETTINGS = PrepareSettings(vocab_size=290, num_shards=2, drop_duplicates=True)
FIRST = [(f"a {n}", f"b {n}") for n in range(30)]
SECOND = [("a 3", "b 3"), *((f"c {n}", f"d {n}") for n in range(10)), ("c 1", "d 1")]


def files_of(folder, name, pairs) -> PairFiles:
    for side, column in (("source", 0), ("target", 1)):
        lines = "".join(f"{pair[column]}\n" for pair in pairs)
        (folder / f"{name}.{side}").write_text(lines)
    return PairFiles(folder / f"{name}.source", folder / f"{name}.target")


def problem_of(folder, copies) -> TextPairProblem:
    files = files_of(folder, "first", FIRST), files_of(folder, "second", SECOND)
    dev = files_of(folder, "dev", [("e", "f")])
    return TextPairProblem({"train": PairCorpora(files, copies), "dev": dev})


def sources_of(data: PreparedData) -> Counter[str]:
    tokenizer, _ = data.tokenizers()
    paths = data.shards("train").paths
    return Counter(
        tokenizer.decode(source) for path in paths for source, _ in examples_in(path)
    )


def test_each_pair_is_written_as_often_as_its_first_corpus_says(tmp_path):
    data = prepare(problem_of(tmp_path, (2, 3)), tmp_path / "data", None, SETTINGS)
    expected = Counter({source: 2 for source, _ in FIRST})
    expected.update({f"c {n}": 3 for n in range(10)})
    assert sources_of(data) == expected
    counts = data.manifest.splits["train"]
    assert (counts.pairs_read, counts.pairs_written) == (42, 90)
    assert counts.dropped == {"exact_repeat": 2}


def test_data_of_other_copies_is_refused(tmp_path):
    prepare(problem_of(tmp_path, (2, 3)), tmp_path / "data", None, SETTINGS)
    with pytest.raises(UserError, match="train_copies has other content"):
        prepare(problem_of(tmp_path, (3, 2)), tmp_path / "data", None, SETTINGS)


def test_every_file_is_a_source(tmp_path):
    data = prepare(problem_of(tmp_path, (1, 1)), tmp_path / "data", None, SETTINGS)
    assert set(data.manifest.sources) == {
        "dev_source",
        "dev_target",
        "train_copies",
        "train_source_1",
        "train_source_2",
        "train_target_1",
        "train_target_2",
    }


def test_held_out_sources_come_from_all_corpora_without_copies(tmp_path):
    files = files_of(tmp_path, "first", FIRST), files_of(tmp_path, "second", SECOND)
    corpora = PairCorpora(files, (1, 4))
    data = prepare(
        TextPairProblem({"train": corpora}), tmp_path / "data", None, SETTINGS
    )
    sources, _ = data.raw_text("dev")
    # 40 distinct sources: 2 are held out, with all their pairs.
    assert data.manifest.splits["dev"].pairs_written == len(sources) == 2
    assert len(set(sources)) == 2
    assert not set(sources) & set(sources_of(data))
