"""Training pairs are written in copies with sampled subwords; other text is not."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from t2t_repro.data import encoding, shard_writer
from t2t_repro.data.encoding import PairEncoder, TextBatch
from t2t_repro.data.manifest import summary_lines
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem, RepeatedPair, Vocabulary
from t2t_repro.data.request import requested_settings
from t2t_repro.errors import UsageError, UserError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer
from tests.data.test_interrupted_preparation import SETTINGS as NUMBERS_SETTINGS
from tests.data.test_interrupted_preparation import Numbers, contents
from tests.support.corpus import examples_in

PLAIN = PrepareSettings(vocab_size=300, num_shards=3, drop_duplicates=True)
SAMPLED = PLAIN.replace(subword_copies=4, subword_sampling=0.3)
WORDS = ("brown", "hedge", "hedgehog", "jumper", "jumping", "overjumped")


def sentence(number: int) -> str:
    return " ".join(WORDS[number // 6**place % 6] for place in range(3))


# Repeated: the first pair. Empty: the last one. 6 copies instead of one: pair 7.
TRAIN = [(sentence(n), f"{sentence(n + 30)} {n % 10}") for n in range(40)]
TRAIN[7] = RepeatedPair(*TRAIN[7], copies=6)
TRAIN += [TRAIN[0], ("brown", " ")]
DEV = [(sentence(n), sentence(n)) for n in (100, 101, 102)]


class Jumps(Problem):
    vocabulary = Vocabulary(size=300)

    def pairs(self, split, tmp_dir):
        yield from TRAIN if split == "train" else DEV


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_writer, "_PAIRS_AT_A_TIME", 5)
        patch.setattr(encoding, "_ITEMS_BEFORE_WORKERS", 1)
        yield


@pytest.fixture(scope="module")
def plain(small_batches, tmp_path_factory) -> PreparedData:
    return prepare(Jumps(), tmp_path_factory.mktemp("plain"), None, PLAIN)


@pytest.fixture(scope="module")
def sampled(small_batches, tmp_path_factory) -> PreparedData:
    return prepare(Jumps(), tmp_path_factory.mktemp("sampled"), None, SAMPLED)


def shards_of(data: PreparedData, split: str = "train"):
    return [examples_in(path) for path in data.shards(split).paths]


def texts(data: PreparedData, shard) -> Counter[tuple[str, str]]:
    source, target = data.tokenizers()
    return Counter((source.decode(a), target.decode(b)) for a, b in shard)


def all_examples(data: PreparedData, split: str = "train"):
    return [pair for shard in shards_of(data, split) for pair in shard]


def test_the_shards_have_the_text_of_every_kept_pair_as_often_as_it_has_copies(
    sampled, plain
):
    usual = texts(plain, all_examples(plain))
    assert usual == Counter({tuple(pair): 1 for pair in TRAIN[:40]} | {TRAIN[7]: 6})
    expected = Counter({pair: 4 * count for pair, count in usual.items()})
    assert texts(sampled, all_examples(sampled)) == expected


def test_copies_differ_from_each_other_and_from_the_usual_subwords(sampled, plain):
    decode, _ = sampled.tokenizers()
    copies = defaultdict(list)
    for source, _ in all_examples(sampled):
        copies[decode.decode(source)].append(source)
    usual = {source for source, _ in all_examples(plain)}
    different = [len(set(own)) / len(own) for own in copies.values()]
    assert np.mean(different) > 0.8
    sampled_sources = [source for own in copies.values() for source in own]
    assert np.mean([source in usual for source in sampled_sources]) < 0.2
    # The end of sentence follows every sample.
    assert all(source[-1] == 1 for source in sampled_sources)


def test_no_side_has_more_subwords_than_pairs_may_have(tmp_path, plain):
    longest = max(len(side) for pair in all_examples(plain) for side in pair)
    settings = SAMPLED.replace(max_pair_length=longest, subword_sampling=1.0)
    data = prepare(Jumps(), tmp_path, None, settings)
    examples = all_examples(data)
    assert max(len(side) for pair in examples for side in pair) <= longest
    # Every pair has all its copies: too long samples became the usual subwords.
    assert len(examples) == 4 * (39 + 6)
    assert {side for pair in examples for side in pair} & {
        side for pair in all_examples(plain) for side in pair
    }


def test_copies_of_a_pair_are_in_different_shards(sampled):
    counts = [texts(sampled, shard) for shard in shards_of(sampled)]
    for source, target in TRAIN[:7]:
        assert sorted(count[source, target] for count in counts) == [1, 1, 2]


def test_only_training_text_is_sampled(sampled, plain):
    before, now = contents(plain.folder), contents(sampled.folder)
    assert set(before) == set(now)
    different = {name for name in before if before[name] != now[name]}
    assert different == {
        *(f"jumps-train-{n:05d}-of-00003" for n in range(3)),
        "jumps.manifest.json",
    }


def test_counts_distinguish_pairs_from_copies(sampled, plain):
    counts, usual = (data.manifest.splits["train"] for data in (sampled, plain))
    assert (counts.pairs_read, counts.pairs_kept, counts.pairs_written) == (42, 40, 180)
    assert counts.dropped == usual.dropped == {"exact_repeat": 1, "empty_side": 1}
    examples = all_examples(sampled)
    sources, targets = np.array([[len(side) for side in pair] for pair in examples]).T
    assert counts.source_subwords == sources.sum() > 4 * usual.source_subwords
    assert counts.target_subwords == targets.sum() > 4 * usual.target_subwords
    lengths = np.bincount(np.maximum(sources, targets))
    assert counts.pairs_by_length == lengths.tolist()
    lines = summary_lines(sampled)
    (row,) = (line.split() for line in lines if line.split()[0] == "train")
    assert row[1:4] == ["42", "180", f"{counts.source_subwords:,}"]
    assert "train: written 180 copies of 40 pair(s)" in lines
    assert not [line for line in lines if line.startswith("dev:")]


def test_the_settings_are_in_the_manifest_and_compared(sampled):
    assert sampled.manifest.settings == PLAIN.recorded() | {
        "subword_copies": 4,
        "subword_sampling": 0.3,
    }
    message = "subword_copies is 4 there, 1 now; subword_sampling is 0.3 there, 0.0 now"
    with pytest.raises(UserError, match=message):
        prepare(Jumps(), sampled.folder, None, PLAIN)
    with pytest.raises(UserError, match=r"otherwise: subword_copies is 4 there, 5 now"):
        prepare(Jumps(), sampled.folder, None, SAMPLED.replace(subword_copies=5))
    given = {"subword_copies": 4, "subword_sampling": 0.3}
    assert open_or_prepare(Jumps(), sampled.folder, given).manifest == sampled.manifest


def test_data_of_an_earlier_version_has_the_defaults(plain):
    assert not [name for name in plain.manifest.settings if "subword" in name]
    assert prepare(Jumps(), plain.folder, None, PLAIN).manifest == plain.manifest
    message = "subword_copies is 1 there, 4 now; subword_sampling is 0.0 there, 0.3 now"
    with pytest.raises(UserError, match=message):
        prepare(Jumps(), plain.folder, None, SAMPLED)


def test_the_number_of_workers_does_not_change_a_byte(tmp_path, sampled):
    prepare(Jumps(), tmp_path, None, SAMPLED, num_workers=2)
    assert contents(tmp_path) == contents(sampled.folder)


def test_another_shuffle_seed_gives_other_samples(tmp_path, sampled):
    settings = SAMPLED.replace(shuffle_seed=2)
    data = prepare(Jumps(), tmp_path, None, settings)
    assert sorted(all_examples(data)) != sorted(all_examples(sampled))
    assert data.manifest.splits["dev"] == sampled.manifest.splits["dev"]


class Recorded(Tokenizer):
    """A tokenizer that records its samplings, and returns ids that tell them apart."""

    has_samples = True
    vocab_size = 1_000

    def __init__(self):
        self.calls = []

    def encode(self, text):
        return [int(text), 9]

    def encode_sampled(self, texts, strength, seed):
        self.calls.append((tuple(texts), strength, seed))
        return [[int(text), len(self.calls), 10] for text in texts]

    decode = pieces = in_graph = to_bytes = None
    load = classmethod(lambda cls, path: cls())


def test_every_copy_of_each_batch_and_side_has_a_seed_of_its_own():
    seeds = []
    texts = ("20", "30"), ("40", "50")
    for number, seed in ((0, 5), (1, 5), (0, 6)):
        sampling = PrepareSettings(
            subword_copies=2, subword_sampling=0.25, shuffle_seed=seed
        )
        sides = Recorded(), Recorded()
        batch = TextBatch(*texts, written=texts[1], copies=[1, 2], number=number)
        encoded = PairEncoder(sides, sampling)(batch)
        # The filters read the usual lengths, and the counts those of the samples.
        assert encoded.lengths.tolist() == [[3, 3], [3, 3]]
        assert encoded.written_lengths.tolist() == [[4] * 6] * 2
        for side, own in zip(sides, texts, strict=True):
            both, second = (own, 0.25), (own[1:], 0.25)
            assert [call[:2] for call in side.calls] == [both, both, second, second]
            seeds += [call[2] for call in side.calls]
    assert len(set(seeds)) == len(seeds) == 3 * 8


class Tags(Problem):
    """A tag for each word."""

    vocabulary = Vocabulary(kind="subwords_to_symbols", size=290, shared=False)

    def pairs(self, split, tmp_dir):
        for source, _ in TRAIN[:20] if split == "train" else DEV:
            yield source, "NN VB NN"


def test_symbols_stay_whole_beside_sampled_sentences(tmp_path):
    data = prepare(Tags(), tmp_path, None, SAMPLED.replace(vocab_size=290))
    sources, targets = zip(*all_examples(data), strict=True)
    assert len({len(source) for source in sources}) > 3
    _, symbols = data.tokenizers()
    assert {symbols.decode(target) for target in targets} == {"NN VB NN"}


def test_a_problem_of_symbols_refuses_sampling(tmp_path):
    problem = Numbers()
    for given in ({"subword_sampling": 0.1}, {"subword_copies": 2}):
        with pytest.raises(UsageError, match=r"for problem numbers, whose vocabulary"):
            requested_settings(problem, given)
    settings = problem.prepare_settings.replace(subword_sampling=0.1)
    with pytest.raises(UserError, match=r"subword_sampling=0\.1 for vocabularies of w"):
        prepare(problem, tmp_path, None, settings)
    assert not [*tmp_path.iterdir()]


# Written by version 0.1 before there were sampled subwords.
BEFORE = {
    "numbers-dev-00000-of-00001": "4c409649d2dfefe1",
    "numbers-dev.inputs.txt": "e169bdf59fac30d2",
    "numbers-dev.targets.txt": "e09c9a258e6ee368",
    "numbers-train-00000-of-00003": "fc8fb3f87a324115",
    "numbers-train-00001-of-00003": "06d13655b9d495aa",
    "numbers-train-00002-of-00003": "817764f170a5888c",
    "numbers.manifest.json": "5b085c3ed7ac2301",
    "numbers.symbols": "2bc369c2559a2aeb",
}


def test_without_sampling_the_bytes_are_those_of_earlier_versions(tmp_path):
    prepare(Numbers(), tmp_path, None, NUMBERS_SETTINGS)
    found = contents(tmp_path)
    manifest = json.loads(found["numbers.manifest.json"])
    del manifest["versions"]
    found["numbers.manifest.json"] = json.dumps(manifest).encode()
    digests = {name: hashlib.sha256(file).hexdigest() for name, file in found.items()}
    assert {name: digest[:16] for name, digest in digests.items()} == BEFORE
