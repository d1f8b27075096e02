from __future__ import annotations

from collections import Counter

import pytest
import tensorflow as tf

from t2t_repro.data.records import ShardWriter, example_bytes, framed

LONG = list(range(0, 40_000, 7))


@pytest.mark.parametrize("ids", [[1], [0, 127, 128, 16_383, 16_384, 2**21], LONG])
def test_an_example_is_tensorflows_own(ids):
    example = tf.train.Example.FromString(example_bytes(ids, [*ids, 1]))
    feature = example.features.feature
    assert sorted(feature) == ["inputs", "targets"]
    assert list(feature["inputs"].int64_list.value) == ids
    assert list(feature["targets"].int64_list.value) == [*ids, 1]


def test_an_example_is_serialized_as_tensorflow_does():
    example = tf.train.Example()
    example.features.feature["inputs"].int64_list.value.extend([300, 1])
    example.features.feature["targets"].int64_list.value.extend([5, 1])
    expected = example.SerializeToString(deterministic=True)
    assert example_bytes([300, 1], [5, 1]) == expected


def test_frames_are_those_of_tensorflows_writer(tmp_path):
    contents = [b"x" * size for size in (5, 0, 1, 700, 64, 5)]
    with tf.io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for content in contents:
            writer.write(content)
    assert b"".join(framed(contents)) == (tmp_path / "records").read_bytes()


def read(path) -> list[bytes]:
    return [record.numpy() for record in tf.data.TFRecordDataset([str(path)])]


def records(count: int) -> list[bytes]:
    return [f"record {index}".encode() for index in range(count)]


def test_every_record_is_written_once(tmp_path):
    paths = [tmp_path / str(index) for index in range(3)]
    with ShardWriter(paths, seed=1) as writer:
        writer.write(records(100))
        writer.write([])
        writer.write(records(7))
    found = Counter(record for path in paths for record in read(path))
    assert found == Counter(records(100)) + Counter(records(7))


def test_files_are_of_even_size(tmp_path):
    paths = [tmp_path / str(index) for index in range(3)]
    with ShardWriter(paths, seed=1) as writer:
        writer.write(records(50))
        writer.write(records(51))
    assert sorted(len(read(path)) for path in paths) == [33, 34, 34]


def shuffled(path, seed: int | None) -> list[bytes]:
    with ShardWriter([path], seed) as writer:
        writer.write(records(50))
    return read(path)


def test_a_seed_fixes_the_order(tmp_path):
    assert shuffled(tmp_path / "a", 3) == shuffled(tmp_path / "b", 3)


def test_another_seed_gives_another_order(tmp_path):
    assert shuffled(tmp_path / "a", 3) != shuffled(tmp_path / "b", 4)


def test_without_a_seed_the_order_stays(tmp_path):
    assert shuffled(tmp_path / "a", None) == records(50)
