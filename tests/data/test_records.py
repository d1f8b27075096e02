from __future__ import annotations

import hashlib
import tracemalloc

import pytest
import tensorflow as tf

from t2t_repro.data.records import (
    DamagedRecordError,
    check_data,
    example_bytes,
    record_ends,
    record_writer,
    shuffle_records,
)

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


def write_records(path, records) -> None:
    with record_writer(path) as write:
        for record in records:
            write(record)


def test_records_end_where_tensorflow_reads_their_ends(tmp_path):
    written = [b"", b"a", b"bc" * 300]
    write_records(tmp_path / "file", written)
    ends = [0 + 16, 16 + 17, 16 + 17 + 616]
    assert [*record_ends((tmp_path / "file").read_bytes())] == ends


@pytest.mark.parametrize("cut", [1, 600, 615])
def test_a_record_that_is_cut_short_is_an_error(tmp_path, cut):
    write_records(tmp_path / "file", [b"a", b"bc" * 300])
    content = (tmp_path / "file").read_bytes()
    with pytest.raises(EOFError):
        record_ends(content[:-cut])


@pytest.mark.parametrize("place", [17, 24, 25, 28])
def test_a_flipped_byte_of_a_length_is_an_error(tmp_path, place):
    write_records(tmp_path / "file", [b"a", b"b"])
    content = bytearray((tmp_path / "file").read_bytes())
    content[place] ^= 1
    with pytest.raises(DamagedRecordError, match="the length of a record has a wrong"):
        record_ends(content)


@pytest.mark.parametrize("place", [12, 15, 16, 19])
def test_a_flipped_byte_of_the_data_is_an_error(tmp_path, place):
    write_records(tmp_path / "file", [b"data"])
    content = bytearray((tmp_path / "file").read_bytes())
    check_data(bytes(content[12:16]), bytes(content[16:]))
    content[place] ^= 1
    with pytest.raises(DamagedRecordError, match=r"^a record has a wrong checksum"):
        check_data(bytes(content[12:16]), bytes(content[16:]))


EXAMPLES = [example_bytes([n, 1], [n * n, 7, 1]) for n in range(50)]


def test_shuffled_shards_have_the_bytes_of_earlier_versions(tmp_path):
    digests = []
    for shard in (0, 1):
        path = tmp_path / f"shard-{shard}"
        write_records(path, EXAMPLES[shard::2])
        shuffle_records(path, f"3/{shard}")
        digests.append(hashlib.sha256(path.read_bytes()).hexdigest())
    assert digests == [
        "1c2ed7e83f2810f7112dca8d53595c02972419059cc4f3a832a439d8d1331cd0",
        "9c6f30be288c7c7171a55b86adccd4e855de09ff484c1737ab0a42d2c51eaa61",
    ]


def test_a_file_without_records_can_be_shuffled(tmp_path):
    write_records(tmp_path / "file", [])
    shuffle_records(tmp_path / "file", "1")
    assert (tmp_path / "file").read_bytes() == b""


def test_a_file_that_is_shuffled_is_in_memory_once(tmp_path):
    write_records(tmp_path / "file", [bytes(1000) for _ in range(4000)])
    tracemalloc.start()
    shuffle_records(tmp_path / "file", "1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * (tmp_path / "file").stat().st_size
