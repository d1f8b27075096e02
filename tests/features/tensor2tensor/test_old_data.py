"""What `t2t-datagen` of tensor2tensor prepared is read where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2t_repro import catalogue
from t2t_repro.constants import EOS_ID
from t2t_repro.data.pipeline import read_examples
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.records import example_bytes, record_writer
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.subword_encoder import SubwordTokenizer

GOLDEN = Path(__file__).parents[2] / "golden" / "t2t_vocabularies.json"
VOCABULARY = json.loads(GOLDEN.read_text(encoding="utf-8"))["subwords"]["file"]
PAIRS = {
    "train": [("a man", "ein Mann"), ("two men", "zwei Männer"), ("a dog", "ein Hund")],
    "dev": [("a café, here", "ein Café, hier"), ("漢字 x_y", "漢字 x_y")],
}


def write(folder, name="translate_own", splits=PAIRS, shards=2, vocabulary=VOCABULARY):
    """Write the files of `t2t-datagen`."""
    folder.mkdir(exist_ok=True)
    (folder / f"vocab.{name}.300.subwords").write_text(vocabulary, encoding="utf-8")
    encode = SubwordTokenizer(VOCABULARY.encode()).encode
    for split, pairs in splits.items():
        count = shards if split == "train" else 1
        for number in range(count):
            path = folder / f"{name}-{split}-{number:05d}-of-{count:05d}"
            with record_writer(path) as add:
                for source, target in pairs[number::count]:
                    add(example_bytes([*encode(source), 1], [*encode(target), 1]))
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def text_pairs():
    return catalogue.problem("text_pairs")


def test_it_is_described_and_not_changed(tmp_path):
    folder = write(tmp_path / "data")
    before = contents(folder)
    data = open_or_prepare(text_pairs(), folder)
    assert data.raw_text("dev") == tuple(map(list, zip(*PAIRS["dev"], strict=True)))
    assert (data.manifest.splits["train"].pairs_written, data.splits) == (
        3,
        ("train", "dev"),
    )
    source, target = data.tokenizers()
    assert source is target
    examples = read_examples(data.shards("train")).as_numpy_iterator()
    texts = sorted(source.decode(pair["inputs"].tolist()) for pair in examples)
    assert texts == ["a dog", "a man", "two men"]
    after = contents(folder)
    assert after.items() >= before.items()
    assert prepare(text_pairs(), folder).digest == data.digest
    assert contents(folder) == after


def test_its_sides_can_be_swapped(tmp_path):
    folder = write(tmp_path / "data")
    data = PreparedData.load(folder, catalogue.problem("text_pairs_rev"))
    assert data.raw_text("dev")[0] == [target for _, target in PAIRS["dev"]]


def test_settings_of_a_preparation_are_refused(tmp_path):
    folder, problem = write(tmp_path / "data"), text_pairs()
    message = r"vocab_size for .* which tensor2tensor prepared"
    with pytest.raises(UserError, match=message):
        open_or_prepare(problem, folder, {"vocab_size": 300})
    with pytest.raises(UserError, match=message):
        prepare(problem, folder, None, problem.prepare_settings.replace(vocab_size=300))


def missing_shard(folder):
    (folder / "translate_own-train-00000-of-00002").unlink()


def two_problems(folder):
    write(folder, "translate_other")


def two_vocabularies(folder):
    path = next(folder.glob("vocab.*"))
    (folder / "vocab.b.9.subwords").write_bytes(path.read_bytes())
    path.rename(folder / "vocab.a.9.subwords")


def other_vocabulary(folder):
    path = next(folder.glob("vocab.*"))
    letters = [f"'{letter}'" for letter in "\\_u;0123456789<pad>EOS"]
    path.write_text("\n".join(["'<pad>_'", "'<EOS>_'", *letters]) + "\n")


def cut_shard(folder):
    path = folder / "translate_own-train-00001-of-00002"
    path.write_bytes(path.read_bytes()[:-3])


def packed_shard(folder):
    path = folder / "translate_own-train-00001-of-00002"
    content = example_bytes([3, EOS_ID], [3, EOS_ID])
    key = b"inputs_segmentation"
    # One more entry of the map: a key, and a feature with the ids 1, 1.
    entry = b"\x0a" + bytes([len(key)]) + key + b"\x12\x06\x1a\x04\x0a\x02\x01\x01"
    more = b"\x0a" + bytes([len(entry)]) + entry
    with record_writer(path) as add:
        add(content + b"\x0a" + bytes([len(more)]) + more)


def negative_id(folder):
    with record_writer(folder / "translate_own-train-00001-of-00002") as add:
        add(example_bytes([-5, EOS_ID], [3, EOS_ID]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (negative_id, "ids below .* that end with 1"),
        (missing_shard, "without translate_own-train-00000-of-00002, expected 2"),
        (two_problems, "data of translate_other, translate_own, expected that of one"),
        (two_vocabularies, "and vocab.b.9.subwords, expected one vocab.translate_own"),
        (other_vocabulary, "the data of another vocabulary"),
        (cut_shard, "translate_own-train-00001-of-00002 has .*cut short"),
        (packed_shard, "has packed examples"),
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_written(tmp_path, damage, message):
    folder = write(tmp_path / "data")
    damage(folder)
    before = contents(folder)
    with pytest.raises(UserError, match=message):
        open_or_prepare(text_pairs(), folder)
    left = contents(folder)
    assert {n for n in left if not n.endswith(".lock")} == before.keys()
