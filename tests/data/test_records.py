from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter

import pytest
import tensorflow as tf

from t2t_repro.data.records import ShardWriter, example_bytes

LONG = list(range(0, 40_000, 7))


@pytest.mark.parametrize("ids", [[1], [0, 127, 128, 16_383, 16_384, 2**21], LONG])
def test_an_example_is_tensorflows_own(ids):
    example = tf.train.Example.FromString(example_bytes(ids, [*ids, 1]))
    feature = example.features.feature
    assert sorted(feature) == ["inputs", "targets"]
    assert list(feature["inputs"].int64_list.value) == ids
    assert list(feature["targets"].int64_list.value) == [*ids, 1]


def test_an_example_has_the_bytes_of_earlier_versions():
    # Protocol buffers: field, length and content; ids are varints (300 is ac 02).
    expected = (
        "0a26 0a11 0a06 696e70757473 1207 1a05 0a03 ac0201"
        "     0a11 0a07 74617267657473 1206 1a04 0a02 0501"
    )
    assert example_bytes([300, 1], [5, 1]) == bytes.fromhex(expected)


def test_shuffled_shards_have_the_bytes_of_earlier_versions(tmp_path):
    paths = [tmp_path / "0", tmp_path / "1"]
    with ShardWriter(paths, seed=3) as writer:
        writer.write([example_bytes([n, 1], [n * n, 7, 1]) for n in range(50)])
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] == [
        "1c2ed7e83f2810f7112dca8d53595c02972419059cc4f3a832a439d8d1331cd0",
        "9c6f30be288c7c7171a55b86adccd4e855de09ff484c1737ab0a42d2c51eaa61",
    ]


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


WITHOUT_RUNTIME = """
import sys
from pathlib import Path
import tensorflow as tf
from t2t_repro.data.records import ShardWriter, example_bytes
with ShardWriter([Path(sys.argv[1])], seed=1) as writer:
    writer.write([example_bytes([n], [n]) for n in range(5)])
(cpu,) = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
"""


def test_the_cpu_can_be_split_into_replicas_after_writing(tmp_path):
    command = [sys.executable, "-c", WITHOUT_RUNTIME, str(tmp_path / "shard")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
