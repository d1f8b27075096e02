from __future__ import annotations

import itertools

import pytest

from t2t_repro.text.alignment import align


@pytest.mark.parametrize(
    ("written", "wanted", "partners"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("ac", "abc", [0, 2]),
        ("abbc", "abc", [0, None, 1, 2]),
        ("axc", "abc", [0, 1, 2]),
        ("", "abc", []),
        ("ab", "", [None, None]),
    ],
)
def test_what_is_alike_belongs_together(written, wanted, partners):
    assert align(written, wanted) == partners


def edits_of(partners, written, wanted):
    """How many edits an alignment stands for."""
    pairs = [(i, j) for i, j in enumerate(partners) if j is not None]
    differing = sum(written[i] != wanted[j] for i, j in pairs)
    return differing + len(written) + len(wanted) - 2 * len(pairs)


def ascending(partners):
    found = [j for j in partners if j is not None]
    return all(a < b for a, b in itertools.pairwise(found))


def test_no_alignment_has_fewer_edits():
    texts = ["".join(x) for n in range(4) for x in itertools.product("ab", repeat=n)]
    for written, wanted in itertools.product(texts, texts):
        choices = itertools.product([None, *range(len(wanted))], repeat=len(written))
        fewest = min(
            edits_of(choice, written, wanted) for choice in choices if ascending(choice)
        )
        found = align(written, wanted)
        assert ascending(found)
        assert edits_of(found, written, wanted) == fewest
