from __future__ import annotations

import hashlib
import random
import tracemalloc

import pytest
import tensorflow as tf

from t2t_repro.data.records import example_bytes
from t2t_repro.data.shard_writer import write_piece, write_shard


def read(path) -> list[bytes]:
    return [record.numpy() for record in tf.data.TFRecordDataset([str(path)])]


def shards_of(folder, pieces, shard_count, seed) -> list[bytes]:
    """Write pieces, then shards; return the content of each shard."""
    written, first = [], 0
    for number, records in enumerate(pieces):
        path = folder / f"piece-{number}"
        written.append((path, write_piece(path, records, first, shard_count)))
        assert path.stat().st_size == written[-1][1][-1]
        first += len(records)
    contents = []
    for shard in range(shard_count):
        segments = [(path, *starts[shard : shard + 2]) for path, starts in written]
        path = folder / f"shard-{shard}"
        write_shard(path, segments, f"{seed}/{shard}")
        contents.append(path.read_bytes())
    return contents


EXAMPLES = [example_bytes([n, 1], [n * n, 7, 1]) for n in range(50)]


def test_a_link_in_place_of_a_piece_or_shard_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for name in ("piece-0", "shard-0"):
        (tmp_path / name).symlink_to(precious)
    shards_of(tmp_path, [EXAMPLES], 1, "seed")
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("sizes", [[50], [1, 49], [7, 7, 36], [0, 50, 0]])
def test_shards_have_the_bytes_of_earlier_versions(tmp_path, sizes):
    pieces, start = [], 0
    for size in sizes:
        pieces.append(EXAMPLES[start : start + size])
        start += size
    contents = shards_of(tmp_path, pieces, 2, seed=3)
    assert [hashlib.sha256(content).hexdigest() for content in contents] == [
        "1c2ed7e83f2810f7112dca8d53595c02972419059cc4f3a832a439d8d1331cd0",
        "9c6f30be288c7c7171a55b86adccd4e855de09ff484c1737ab0a42d2c51eaa61",
    ]


def test_a_record_belongs_to_the_shard_after_that_of_the_record_before(tmp_path):
    records = [str(n).encode() for n in range(10)]
    shards_of(tmp_path, [records[:4], records[4:]], 3, seed=1)
    for shard in range(3):
        expected = records[shard::3]
        random.Random(f"1/{shard}").shuffle(expected)
        assert read(tmp_path / f"shard-{shard}") == expected


def test_more_shards_than_records_leave_empty_shards(tmp_path):
    contents = shards_of(tmp_path, [[b"a"]], 3, seed=1)
    assert [len(content) for content in contents] == [17, 0, 0]


def test_a_shard_is_in_memory_once(tmp_path):
    records = [bytes(1000) for _ in range(4000)]
    segments = []
    for number in range(4):
        path = tmp_path / f"piece-{number}"
        starts = write_piece(path, records[:1000], 0, 1)
        segments.append((path, *starts))
    del records
    tracemalloc.start()
    write_shard(tmp_path / "shard", segments, "1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * (tmp_path / "shard").stat().st_size


def test_a_piece_that_was_cut_short_is_an_error(tmp_path):
    path = tmp_path / "piece"
    starts = write_piece(path, [b"a", b"b"], 0, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match="was cut short"):
        write_shard(tmp_path / "shard", [(path, *starts)], "1")


def test_a_piece_that_was_changed_is_an_error(tmp_path):
    path = tmp_path / "piece"
    starts = write_piece(path, [b"a", b"b"], 0, 1)
    content = bytearray(path.read_bytes())
    content[17] ^= 1  # the length of the second record
    path.write_bytes(content)
    with pytest.raises(OSError, match="was changed by another process: the length"):
        write_shard(tmp_path / "shard", [(path, *starts)], "1")
