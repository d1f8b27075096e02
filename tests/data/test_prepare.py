"""Preparing hands everything it receives on; all values differ."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from t2t_repro import __version__
from t2t_repro.data import prepare as prepare_module
from t2t_repro.data.manifest import FORMAT, Manifest
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import PrepareSettings, Problem, ReversedProblem, Vocabulary
from t2t_repro.errors import UsageError, UserError
from t2t_repro.text import train_sentencepiece
from tests.support.pairs_problem import DIGITS, LETTERS, Pairs
from tests.support.pairs_problem import SETTINGS as OF_PAIRS
from tests.support.recorder import record

SETTINGS = PrepareSettings(vocab_size=330, num_shards=3, max_pair_length=60)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven")
ZAHLEN = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben")


def counting(first: int, last: int) -> list[tuple[str, str]]:
    return [
        (
            " ".join(NUMBERS[(n + k * n) % 7] for k in range(n % 9 + 1)),
            " ".join(ZAHLEN[(n + k * n) % 7] for k in range(n % 9 + 1)),
        )
        for n in range(first, last)
    ]


class Numbers(Problem):
    """Counts from English to German."""

    def __init__(self, **pairs: list[tuple[str, str]]) -> None:
        self.text = {
            "train": counting(0, 200),
            "dev": counting(200, 210),
            "test": counting(300, 305),
            **pairs,
        }
        self.splits = tuple(self.text)

    def pairs(self, split, tmp_dir):
        yield from self.text[split]

    def source_identities(self, tmp_dir):
        return {split: {"lines": len(pairs)} for split, pairs in self.text.items()}


class Digits(Problem):
    """Counts in symbols."""

    vocabulary = Vocabulary(kind="symbols", symbols=("1", "2"))

    def pairs(self, split, tmp_dir):
        yield "1 2", "2"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare(Numbers(), folder, settings=SETTINGS)
    return folder


def test_file_names_are_tensor2tensors(data_dir):
    assert sorted(contents(data_dir)) == [
        "numbers-dev-00000-of-00001",
        "numbers-dev.inputs.txt",
        "numbers-dev.targets.txt",
        "numbers-test-00000-of-00001",
        "numbers-test.inputs.txt",
        "numbers-test.targets.txt",
        "numbers-train-00000-of-00003",
        "numbers-train-00001-of-00003",
        "numbers-train-00002-of-00003",
        "numbers.manifest.json",
        "numbers.model",
    ]


def test_prepared_data_is_found_again_and_not_rewritten(data_dir, caplog):
    before = {path.name: path.stat().st_mtime_ns for path in data_dir.iterdir()}
    with caplog.at_level("INFO", logger="t2t_repro"):
        data = prepare(Numbers(), data_dir, settings=SETTINGS)
    assert data.manifest == Manifest.load(data_dir, Numbers())
    assert "already prepared in" in caplog.text
    assert before == {path.name: path.stat().st_mtime_ns for path in data_dir.iterdir()}


OTHERS = {
    "vocab_size": 300,
    "model_type": "unigram",
    "shared_vocabulary": False,
    "max_pair_length": 9,
    "max_length_ratio": 1.5,
    "drop_duplicates": True,
    "num_shards": 4,
    "subword_sampling": 0.1,
    "shuffle_seed": 2,
    "character_coverage": 0.99,
}


@pytest.mark.parametrize(
    "name", sorted({*PrepareSettings.names()} - {"subword_copies"})
)
def test_data_of_another_setting_is_refused_with_only_that_difference(data_dir, name):
    before, now = getattr(SETTINGS, name), OTHERS[name]
    settings = dataclasses.replace(SETTINGS, **{name: now})
    message = f"{name} is {before!r} there, {now!r} now"
    with pytest.raises(UserError, match=rf"prepared otherwise: {message}\.\n"):
        prepare(Numbers(), data_dir, settings=settings)


def test_every_setting_reaches_the_vocabulary_or_is_recorded_under_its_name(tmp_path):
    """Every value differs from its default and from all others."""
    settings = PrepareSettings(
        vocab_size=275,
        model_type="unigram",
        shared_vocabulary=False,
        max_pair_length=41,
        max_length_ratio=2.5,
        drop_duplicates=True,
        num_shards=4,
        shuffle_seed=7,
        character_coverage=0.985,
    )
    # Some names are those of earlier versions.
    prepare(Numbers(), tmp_path, settings=settings)
    written = json.loads((tmp_path / "numbers.manifest.json").read_text())
    assert written["settings"] == {
        "vocab_size": 275,
        "model_type": "unigram",
        "shared_vocabulary": False,
        "max_length": 41,
        "max_length_ratio": 2.5,
        "drop_duplicates": True,
        "num_shards": 4,
        "seed": 7,
        "character_coverage": 0.985,
    }
    for side in ("inputs", "targets"):
        content = (tmp_path / f"numbers.{side}.model").read_bytes()
        spec = sentencepiece_model_pb2.ModelProto.FromString(content).trainer_spec
        assert spec.vocab_size == 275
        assert spec.model_type == sentencepiece_model_pb2.TrainerSpec.UNIGRAM
        assert spec.character_coverage == pytest.approx(0.985)


def test_the_digest_covers_names_and_checksums_of_all_files(data_dir):
    manifest = PreparedData.load(data_dir, Numbers()).manifest
    there = contents(data_dir)
    del there["numbers.manifest.json"]
    facts = [
        f'["{name}", "{hashlib.sha256(there[name]).hexdigest()}"]'
        for name in sorted(there)
    ]
    expected = hashlib.sha256(f"[{', '.join(facts)}]".encode()).hexdigest()
    assert manifest.digest == expected


def test_data_of_another_version_of_the_problem_is_refused(data_dir):
    problem = Numbers()
    problem.version = 2
    with pytest.raises(UserError, match="version is 1 there, 2 now"):
        prepare(problem, data_dir, settings=SETTINGS)


def damaged_copy(data_dir: Path, tmp_path: Path, name: str, content: bytes) -> Path:
    for file_name, data in contents(data_dir).items():
        (tmp_path / file_name).write_bytes(data)
    (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", f'{{"format": {FORMAT}}}'.encode(), b"\xff"]
)
def test_a_damaged_manifest_is_refused(data_dir, tmp_path, content):
    folder = damaged_copy(data_dir, tmp_path, "numbers.manifest.json", content)
    with pytest.raises(UserError, match=r"numbers\.manifest\.json is damaged"):
        prepare(Numbers(), folder, settings=SETTINGS)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.model"
    path.write_bytes(train_sentencepiece(["one two three"] * 9, vocab_size=280))
    return path


def test_a_model_of_the_users_own_is_copied_and_compared(tmp_path, own):
    settings = dataclasses.replace(SETTINGS, source_model=str(own))
    prepare(Numbers(), tmp_path / "data", settings=settings)
    assert (tmp_path / "data" / "numbers.model").read_bytes() == own.read_bytes()
    own.write_bytes(train_sentencepiece(["four five six"] * 9, vocab_size=280))
    with pytest.raises(UserError, match="source_model has other content"):
        prepare(Numbers(), tmp_path / "data", settings=settings)


def test_data_of_a_users_own_model_is_opened_without_it(tmp_path, own):
    settings = dataclasses.replace(SETTINGS, source_model=str(own))
    prepared = prepare(Numbers(), tmp_path / "data", settings=settings)
    own.unlink()
    before = (tmp_path / "data" / "numbers.model").stat().st_mtime_ns
    for given in ({}, {"num_shards": 3}):
        opened = open_or_prepare(Numbers(), tmp_path / "data", given)
        assert opened.manifest == prepared.manifest
    assert (tmp_path / "data" / "numbers.model").stat().st_mtime_ns == before


def test_a_users_own_model_is_refused_for_data_without_it(data_dir, own):
    with pytest.raises(UserError, match="source_model was not given there"):
        open_or_prepare(Numbers(), data_dir, {"source_model": str(own)})


def test_a_split_without_pairs_is_refused_and_leaves_no_file(tmp_path):
    problem = Numbers(train=[("one " * 90, "eins"), ("one", "")])
    settings = dataclasses.replace(SETTINGS, vocab_size=280)
    with pytest.raises(UserError, match=r"no train pair is left of 2 .1 "):
        prepare(problem, tmp_path / "data", settings=settings)
    assert not (tmp_path / "data").exists()


def test_a_shard_that_the_manifest_does_not_list_is_neither_read_nor_changed(
    data_dir, tmp_path
):
    stale = "numbers-train-00003-of-00004"
    folder = damaged_copy(data_dir, tmp_path, stale, b"stale")
    before = contents(folder)
    data = prepare(Numbers(), folder, settings=SETTINGS)
    assert len(data.shards("train").paths) == 3
    assert contents(folder) == before


class Careless(Digits):
    """A problem that does not only yield pairs."""

    vocabulary = Vocabulary(size=280)

    def __init__(self, split: str, wrong: object) -> None:
        self.split, self.wrong = split, wrong

    def pairs(self, split, tmp_dir):
        if split == self.split and self.wrong is None:
            return None
        return iter(
            [("one", "eins"), self.wrong if split == self.split else ("2", "2")]
        )


SYMBOLS = Vocabulary(kind="symbols", symbols=("one", "eins", "2"))


@pytest.mark.parametrize(
    ("split", "vocabulary", "wrong", "shown"),
    [
        ("dev", Careless.vocabulary, "ab", "'ab' as pair 2"),
        ("train", SYMBOLS, "ab", "'ab' as pair 2"),
        ("train", Careless.vocabulary, "ab", "'ab' as pair 2"),
        ("train", Careless.vocabulary, ("a", "b", "c"), "('a', 'b', 'c') as pair 2"),
        ("train", Careless.vocabulary, ("a",), "('a',) as pair 2"),
        ("train", Careless.vocabulary, ("a", None), "('a', None) as pair 2"),
        ("train", Careless.vocabulary, (b"a", "b"), "(b'a', 'b') as pair 2"),
        ("test", SYMBOLS, None, "None from `pairs`"),
    ],
)
def test_anything_but_pairs_of_strings_is_refused(
    tmp_path, split, vocabulary, wrong, shown
):
    problem = Careless(split, wrong)
    problem.vocabulary = vocabulary
    settings = dataclasses.replace(SETTINGS, vocab_size=280)
    with pytest.raises(UserError) as caught:
        prepare(problem, tmp_path / "data", settings=settings)
    start = f"problem careless, split {split}: received {shown}, expected "
    assert str(caught.value).startswith(start)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("num_workers", [0, -1])
@pytest.mark.parametrize("function", [prepare, open_or_prepare])
def test_fewer_than_one_process_is_refused(tmp_path, function, num_workers):
    with pytest.raises(UsageError, match=f"num_workers={num_workers}, expected at"):
        function(Digits(), tmp_path / "data", num_workers=num_workers)
    assert not (tmp_path / "data").exists()


@pytest.fixture
def tokenizers(monkeypatch):
    """Put given tokenizers in place of learned ones, and record the learning."""
    monkeypatch.setattr(prepare_module, "given_tokenizers", lambda *_: None)
    return record(monkeypatch, prepare_module, "learn_tokenizers", (DIGITS, LETTERS))


def test_opening_reads_from_the_folder_for_downloads(tmp_path, tokenizers):
    for names in (["identities", "check", "test", "dev", "train"], ["identities"]):
        problem = Pairs()
        given = {"vocab_size": 330}
        open_or_prepare(
            ReversedProblem(problem), tmp_path / "data", given, tmp_path / "tmp"
        )
        assert problem.read == [(name, tmp_path / "tmp") for name in names]


def test_the_manifest_has_every_value_under_its_name(tmp_path, tokenizers):
    problem = Pairs()
    manifest = prepare(problem, tmp_path / "data", None, OF_PAIRS).manifest
    assert (manifest.problem, manifest.problem_version) == ("pairs", 7)
    assert manifest.settings == OF_PAIRS.recorded()
    assert manifest.sources == {"text": {"lines": 9}}
    assert manifest.tokenizers == {
        "inputs": "pairs.inputs.symbols",
        "targets": "pairs.targets.symbols",
    }
    assert manifest.vocab_sizes == {
        "inputs": DIGITS.vocab_size,
        "targets": LETTERS.vocab_size,
    }
    assert manifest.versions == {
        "t2t_repro": __version__,
        "sentencepiece": sentencepiece.__version__,
    }
    assert manifest == PreparedData.load(tmp_path / "data", problem).manifest
    for name, facts in manifest.files.items():
        content = (tmp_path / "data" / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert facts == {"bytes": len(content), "sha256": digest}
    source, target = PreparedData.load(tmp_path / "data", problem).tokenizers()
    assert (source.symbols, target.symbols) == (DIGITS.symbols, LETTERS.symbols)


def test_missing_data_is_summarized_and_existing_data_is_not(
    tmp_path, tokenizers, caplog
):
    caplog.set_level("INFO", "t2t_repro")
    data = open_or_prepare(Pairs(), tmp_path)
    assert data.manifest.settings["vocab_size"] == 340
    assert "vocabulary of" in caplog.text
    caplog.clear()
    open_or_prepare(Pairs(), tmp_path)
    assert caplog.text == ""
