from __future__ import annotations

import hashlib

import pytest

from t2t_repro.data.file_problem import choose_held_out
from t2t_repro.errors import UserError


def hashes(pairs) -> list[int]:
    found = {
        hashlib.blake2b(source.strip().encode(), digest_size=8).digest()
        for source, target in pairs
        if source.strip() and target.strip()
    }
    return sorted(int.from_bytes(digest, "little") for digest in found)


@pytest.mark.parametrize(
    ("count", "held_out"), [(2, 1), (39, 1), (40, 2), (20_000, 1_000), (25_000, 1_000)]
)
def test_one_in_twenty_distinct_sources_is_held_out_up_to_a_thousand(count, held_out):
    pairs = [(f"source {n}", "t") for n in range(count)]
    others = [
        (" source 1 ", "u"),
        ("source 0", "t"),
        ("empty", " "),
        ("", "t"),
    ]
    choice = choose_held_out(iter([*pairs, *others]))
    assert choice == hashes(pairs)[held_out - 1]


def test_blank_pairs_alone_get_no_advice_about_dev_text():
    pairs = [("", "a"), ("b", "\u200b"), (" ", "\u00a0")]
    with pytest.raises(
        UserError, match=r"3 training pair.* all with an empty or blank"
    ):
        choose_held_out(pairs)


@pytest.mark.parametrize(
    "pairs", [[], [("a", "b"), ("a", "c")], [("", ""), ("a", "b")]]
)
def test_fewer_than_two_sources_are_refused(pairs):
    with pytest.raises(UserError, match=f"received {len(pairs)} training pair"):
        choose_held_out(pairs)


def test_half_a_surrogate_pair_is_a_source_like_any_other():
    assert choose_held_out([("a\ud800", "b"), ("c", "d")]) > 0
