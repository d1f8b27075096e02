"""Preparing hands everything it receives on; all values differ."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from pathlib import Path

import pytest
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from t2t_repro import __version__
from t2t_repro.data import prepare as prepare_module
from t2t_repro.data.manifest import FORMAT, Manifest
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import PrepareSettings, Problem, ReversedProblem, Vocabulary
from t2t_repro.errors import UsageError, UserError
from t2t_repro.text import SymbolTokenizer, train_sentencepiece
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


def examples(data_dir: Path, problem: Problem, split: str) -> list[tuple[list, list]]:
    records = tf.data.TFRecordDataset(
        list(PreparedData.load(data_dir, problem).shards(split).paths)
    )
    parsed = [tf.train.Example.FromString(record.numpy()) for record in records]
    return [
        (
            list(example.features.feature["inputs"].int64_list.value),
            list(example.features.feature["targets"].int64_list.value),
        )
        for example in parsed
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare(Numbers(), folder, settings=SETTINGS)
    return folder


def test_shards_hold_every_pair_with_its_end_of_sentence(data_dir):
    source, target = PreparedData.load(data_dir, Numbers()).tokenizers()
    expected = [
        ([*source.encode(left), 1], [*target.encode(right), 1])
        for left, right in Numbers().text["train"]
    ]
    assert sorted(examples(data_dir, Numbers(), "train")) == sorted(expected)


def test_training_pairs_are_shuffled(data_dir):
    source, _ = PreparedData.load(data_dir, Numbers()).tokenizers()
    texts = [source.decode(ids) for ids, _ in examples(data_dir, Numbers(), "train")]
    assert texts != [left for left, _ in Numbers().text["train"]]


def test_dev_pairs_keep_their_order(data_dir):
    source, _ = PreparedData.load(data_dir, Numbers()).tokenizers()
    texts = [source.decode(ids) for ids, _ in examples(data_dir, Numbers(), "dev")]
    assert texts == [left for left, _ in Numbers().text["dev"]]


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


def test_the_manifest_counts_what_is_in_the_shards(data_dir):
    manifest = PreparedData.load(data_dir, Numbers()).manifest
    found = examples(data_dir, Numbers(), "train")
    counts = manifest.splits["train"]
    assert (counts.pairs_read, counts.pairs_written) == (200, len(found))
    assert counts.source_subwords == sum(len(inputs) for inputs, _ in found)
    assert counts.target_subwords == sum(len(targets) for _, targets in found)


def test_preparing_elsewhere_gives_the_same_bytes(data_dir, tmp_path):
    prepare(Numbers(), tmp_path, settings=SETTINGS)
    assert contents(tmp_path) == contents(data_dir)


def test_another_seed_changes_only_the_order(data_dir, tmp_path):
    prepare(Numbers(), tmp_path, settings=dataclasses.replace(SETTINGS, shuffle_seed=2))
    here, there = (examples(path, Numbers(), "train") for path in (tmp_path, data_dir))
    assert here != there
    assert sorted(here) == sorted(there)


def test_a_reversed_problem_uses_the_files_of_its_base(tmp_path):
    problem = ReversedProblem(Numbers())
    settings = dataclasses.replace(SETTINGS, shared_vocabulary=False, vocab_size=290)
    data = prepare(problem, tmp_path, settings=settings)
    assert data.manifest.problem == "numbers"
    source, target = PreparedData.load(tmp_path, problem).tokenizers()
    assert source.decode(source.encode("fünf")) == "fünf"
    assert target.decode(target.encode("five")) == "five"
    forth = PreparedData.load(tmp_path, Numbers()).tokenizers()
    assert [source.to_bytes(), target.to_bytes()] == [
        forth[1].to_bytes(),
        forth[0].to_bytes(),
    ]
    straight = PreparedData.load(tmp_path, Numbers())
    assert data.raw_text("dev") == straight.raw_text("dev")[::-1]


def test_separate_vocabularies_are_learnt_from_one_side_each(tmp_path):
    settings = dataclasses.replace(SETTINGS, shared_vocabulary=False, vocab_size=290)
    prepare(Numbers(), tmp_path, settings=settings)
    source, target = PreparedData.load(tmp_path, Numbers()).tokenizers()
    assert len(source.encode("three")) < len(target.encode("three"))


def test_the_raw_text_keeps_pairs_that_the_shards_leave_out(tmp_path):
    dev = [("one", "eins"), ("\u200b", "zwei"), ("two " * 70, "zwei")]
    data = prepare(Numbers(dev=dev), tmp_path, settings=SETTINGS)
    sources, references = data.raw_text("dev")
    assert sources == ["one", "\u200b", "two " * 70]
    assert references == ["eins", "zwei", "zwei"]
    assert data.manifest.splits["dev"].dropped == {"empty_side": 1, "too_long": 1}


def test_training_pairs_of_the_dev_text_are_counted(tmp_path):
    problem = Numbers(dev=[("nowhere", "nirgends"), *counting(5, 6)], test=[("x", "y")])
    manifest = prepare(problem, tmp_path, settings=SETTINGS).manifest
    same = sum(pair == counting(5, 6)[0] for pair in counting(0, 200))
    assert manifest.splits["train"].also_held_out == same


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


def test_the_differences_cover_every_setting():
    # `test_subword_sampling` has the copies, which need a second setting.
    assert set(PrepareSettings.names()) - {"subword_copies"} == set(OTHERS)


@pytest.mark.parametrize(
    "name", sorted({*PrepareSettings.names()} - {"subword_copies"})
)
def test_data_of_another_setting_is_refused_with_only_that_difference(data_dir, name):
    before, now = getattr(SETTINGS, name), OTHERS[name]
    settings = dataclasses.replace(SETTINGS, **{name: now})
    message = f"{name} is {before!r} there, {now!r} now"
    with pytest.raises(UserError, match=rf"prepared otherwise: {message}\.\n"):
        prepare(Numbers(), data_dir, settings=settings)


def test_every_difference_of_settings_is_named(data_dir):
    settings = dataclasses.replace(SETTINGS, shuffle_seed=2, max_pair_length=9)
    with pytest.raises(
        UserError, match="max_pair_length is 60 there, 9 now; shuffle_seed"
    ):
        prepare(Numbers(), data_dir, settings=settings)


# Every value differs from its default and from all others.
DISTINCT = PrepareSettings(
    vocab_size=281,
    model_type="unigram",
    shared_vocabulary=False,
    max_pair_length=41,
    max_length_ratio=2.5,
    drop_duplicates=True,
    num_shards=4,
    shuffle_seed=7,
    character_coverage=0.985,
)


@pytest.fixture(scope="module")
def distinct_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distinct")
    # A rare letter that a coverage of 0.985 leaves to its bytes; then one pair for each
    # reason to leave it out, in this order of lengths: 2, 42 and 3, 9 with the end.
    train = [
        *((f"{n} one two three four", f"{n} eins zwei drei vier") for n in range(60)),
        ("one two three ŵ", "eins zwei drei vier"),
        ("0 one two three four", "0 eins zwei drei vier"),
        (" ", "eins"),
        (" ".join("0123456789" * 3), " ".join("0123456789" * 3)),
        ("1 2", " ".join("1234567890")),
    ]
    prepare(Numbers(train=train), folder, settings=DISTINCT)
    return folder


def test_every_setting_is_recorded_under_its_name(distinct_data):
    written = json.loads((distinct_data / "numbers.manifest.json").read_text())
    assert written["settings"] == {
        "vocab_size": 281,
        "model_type": "unigram",
        "shared_vocabulary": False,
        "max_length": 41,
        "max_length_ratio": 2.5,
        "drop_duplicates": True,
        "num_shards": 4,
        "seed": 7,
        "character_coverage": 0.985,
    }


@pytest.mark.parametrize("side", ["inputs", "targets"])
def test_settings_of_the_vocabulary_reach_sentencepiece(distinct_data, side):
    content = (distinct_data / f"numbers.{side}.model").read_bytes()
    spec = sentencepiece_model_pb2.ModelProto.FromString(content).trainer_spec
    assert spec.vocab_size == 281
    assert spec.model_type == sentencepiece_model_pb2.TrainerSpec.UNIGRAM
    assert spec.character_coverage == pytest.approx(0.985)


def test_a_rare_character_is_spelt_in_bytes_if_the_coverage_excludes_it(
    distinct_data,
):
    source, _ = PreparedData.load(distinct_data, Numbers()).tokenizers()
    pieces = sentencepiece_model_pb2.ModelProto.FromString(source.to_bytes()).pieces
    assert not [piece.piece for piece in pieces if "ŵ" in piece.piece]
    assert [piece.piece for piece in pieces if "t" in piece.piece]


def test_settings_of_the_filters_leave_out_one_pair_each(distinct_data):
    counts = PreparedData.load(distinct_data, Numbers()).manifest.splits["train"]
    assert counts.dropped == {
        "empty_side": 1,
        "exact_repeat": 1,
        "length_ratio": 1,
        "too_long": 1,
    }
    assert (counts.pairs_read, counts.pairs_written) == (65, 61)


def test_settings_of_the_shards_decide_number_and_order(distinct_data):
    names = PreparedData.load(distinct_data, Numbers()).manifest.splits["train"].shards
    assert names == [f"numbers-train-{number:05d}-of-00004" for number in range(4)]
    # The first of four shards holds every fourth pair, shuffled by "<seed>/<shard>".
    order = [n for n in range(61) if n % 4 == 0]
    random.Random("7/0").shuffle(order)
    source, _ = PreparedData.load(distinct_data, Numbers()).tokenizers()
    first = tf.data.TFRecordDataset(str(distinct_data / names[0]))
    texts = [
        source.decode(
            tf.train.Example.FromString(record.numpy())
            .features.feature["inputs"]
            .int64_list.value
        )
        for record in first
    ]
    assert [text.partition(" ")[0] for text in texts] == [
        "one" if n == 60 else str(n) for n in order
    ]


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


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_digest_changes_with_the_text_of_any_split(data_dir, tmp_path, split):
    pairs = Numbers().text[split]
    other = Numbers(**{split: [*pairs[1:], pairs[0]]})
    before = PreparedData.load(data_dir, Numbers()).manifest
    after = prepare(other, tmp_path, settings=SETTINGS)
    assert after.digest != before.digest


def test_data_of_other_text_is_refused(data_dir):
    with pytest.raises(UserError, match="train has other content"):
        prepare(Numbers(train=counting(0, 199)), data_dir, settings=SETTINGS)


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


SHARD = "numbers-train-00001-of-00003"


def test_a_shard_that_is_cut_short_or_missing_is_refused(data_dir, tmp_path):
    content = contents(data_dir)[SHARD]
    folder = damaged_copy(data_dir, tmp_path, SHARD, content[:-3])
    with pytest.raises(UserError, match=f"{SHARD} has .* bytes, expected"):
        PreparedData.load(folder, Numbers()).shards("train")
    (folder / SHARD).unlink()
    with pytest.raises(UserError, match=f"{SHARD} is missing"):
        PreparedData.load(folder, Numbers()).shards("train")


def test_a_changed_shard_is_refused(data_dir, tmp_path):
    content = contents(data_dir)[SHARD]
    folder = damaged_copy(data_dir, tmp_path, SHARD, content[:-1] + b"?")
    with pytest.raises(UserError, match=f"{SHARD} has changed"):
        prepare(Numbers(), folder, settings=SETTINGS)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", f'{{"format": {FORMAT}}}'.encode(), b"\xff"]
)
def test_a_damaged_manifest_is_refused(data_dir, tmp_path, content):
    folder = damaged_copy(data_dir, tmp_path, "numbers.manifest.json", content)
    with pytest.raises(UserError, match=r"numbers\.manifest\.json is damaged"):
        prepare(Numbers(), folder, settings=SETTINGS)


def test_a_manifest_of_another_format_is_refused(data_dir, tmp_path):
    name = "numbers.manifest.json"
    values = json.loads(contents(data_dir)[name]) | {"format": 99}
    folder = damaged_copy(data_dir, tmp_path, name, json.dumps(values).encode())
    with pytest.raises(UserError, match=f"received format 99, expected {FORMAT}"):
        Manifest.load(folder, Numbers())


def test_the_symbols_of_a_problem_are_its_vocabulary(tmp_path):
    manifest = prepare(Digits(), tmp_path).manifest
    assert manifest.tokenizers == {
        "inputs": "digits.symbols",
        "targets": "digits.symbols",
    }
    assert examples(tmp_path, Digits(), "dev") == [([3, 4, 1], [4, 1])]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a model of the user's own."""
    path = tmp_path / "own.model"
    path.write_bytes(train_sentencepiece(["one two three"] * 9, vocab_size=280))
    return path


def test_a_model_of_the_users_own_is_copied_and_used(tmp_path, own):
    settings = dataclasses.replace(SETTINGS, source_model=str(own))
    prepare(Numbers(), tmp_path / "data", settings=settings)
    assert (tmp_path / "data" / "numbers.model").read_bytes() == own.read_bytes()


def test_another_model_of_the_users_own_is_refused(tmp_path, own):
    settings = dataclasses.replace(SETTINGS, source_model=str(own))
    prepare(Numbers(), tmp_path / "data", settings=settings)
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


def test_a_users_own_model_is_refused_for_data_without_it(tmp_path, own):
    prepare(Numbers(), tmp_path / "data", settings=SETTINGS)
    with pytest.raises(UserError, match="source_model was not given there"):
        open_or_prepare(Numbers(), tmp_path / "data", {"source_model": str(own)})


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_split_without_pairs_is_refused_and_leaves_no_file(tmp_path, split):
    problem = Numbers(**{split: [("one " * 90, "eins"), ("one", "")]})
    settings = dataclasses.replace(SETTINGS, vocab_size=280)
    with pytest.raises(UserError, match=f"no {split} pair is left of 2 .1 "):
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

    splits = ("train", "dev")
    vocabulary = Vocabulary(size=280)

    def __init__(self, split: str, wrong: object) -> None:
        self.split, self.wrong = split, wrong

    def pairs(self, split, tmp_dir):
        yield "one", "eins"
        yield self.wrong if split == self.split else ("two", "zwei")


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ("ab", "'ab'"),
        (("a", "b", "c"), "('a', 'b', 'c')"),
        (("a",), "('a',)"),
        (("a", None), "('a', None)"),
        ((b"a", "b"), "(b'a', 'b')"),
        (None, "None"),
    ],
)
def test_anything_but_a_pair_of_strings_is_refused(tmp_path, split, wrong, shown):
    problem = Careless(split, wrong)
    settings = dataclasses.replace(SETTINGS, vocab_size=280)
    with pytest.raises(UserError) as caught:
        prepare(problem, tmp_path / "data", settings=settings)
    assert str(caught.value).startswith(
        f"problem careless, split {split}: received {shown} as pair 2, expected a "
        "tuple of two strings"
    )
    assert not (tmp_path / "data").exists()


def test_a_training_pair_is_checked_if_no_vocabulary_is_learned(tmp_path):
    problem = Careless("train", "ab")
    problem.vocabulary = Vocabulary(kind="symbols", symbols=("one", "eins"))
    with pytest.raises(UserError, match="split train: received 'ab' as pair 2"):
        prepare(problem, tmp_path / "data")


class Forgetful(Digits):
    """A problem that forgets to yield."""

    def pairs(self, split, tmp_dir):
        return None


def test_none_instead_of_pairs_is_refused(tmp_path):
    with pytest.raises(UserError, match="split test: received None from `pairs`"):
        prepare(Forgetful(), tmp_path / "data")


def test_a_line_feed_in_generated_text_does_not_put_the_raw_text_out_of_step(tmp_path):
    prepare(Numbers(dev=[("one\ntwo", "eins")] * 2), tmp_path, settings=SETTINGS)
    written = (tmp_path / "numbers-dev.inputs.txt").read_bytes()
    assert written == b"one two\none two\n"


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


def test_given_tokenizers_are_not_learned(tmp_path, tokenizers, monkeypatch):
    record(monkeypatch, prepare_module, "given_tokenizers", (LETTERS, DIGITS))
    data = prepare(Pairs(), tmp_path, None, OF_PAIRS)
    assert tokenizers.calls == []
    assert data.manifest.vocab_sizes == {
        "inputs": LETTERS.vocab_size,
        "targets": DIGITS.vocab_size,
    }


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


class Model(SymbolTokenizer):
    """A tokenizer whose file has another suffix than that of symbols."""

    filename_suffix = ".model"


def test_each_side_has_a_file_of_its_kind(tmp_path, monkeypatch):
    sides = Model(list("1234")), LETTERS
    record(monkeypatch, prepare_module, "given_tokenizers", sides)
    manifest = prepare(Pairs(), tmp_path, None, OF_PAIRS).manifest
    assert manifest.tokenizers == {
        "inputs": "pairs.inputs.model",
        "targets": "pairs.targets.symbols",
    }
    written = (tmp_path / "pairs.inputs.model").read_bytes()
    assert written == sides[0].to_bytes()


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
