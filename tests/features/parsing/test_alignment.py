from __future__ import annotations

import itertools

import pytest

from t2t_repro.features.parsing.tree_symbols import align


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
def test_equal_elements_are_partners(written, wanted, partners):
    assert align(written, wanted) == partners


def edits_of(partners, written, wanted):
    """Return the number of edits of an alignment."""
    pairs = [(i, j) for i, j in enumerate(partners) if j is not None]
    differing = sum(written[i] != wanted[j] for i, j in pairs)
    return differing + len(written) + len(wanted) - 2 * len(pairs)


def ascending(partners):
    found = [j for j in partners if j is not None]
    return all(a < b for a, b in itertools.pairwise(found))


def alignments(written, wanted):
    """Return every alignment of two sequences."""
    choices = itertools.product([None, *range(len(wanted))], repeat=len(written))
    return filter(ascending, choices)


def preference(partners, wanted):
    """Return the documented ranks of the partners, the last element first."""
    ranks, end = [], len(wanted)
    for partner in reversed(partners):
        if partner is None:
            ranks.append(1)
        else:
            skipped = end - 1 - partner
            ranks.append(0 if skipped == 0 else 1 + skipped)
            end = partner
    return ranks


TEXTS = ["".join(x) for n in range(4) for x in itertools.product("abc", repeat=n)]


@pytest.mark.parametrize("written", TEXTS)
def test_the_alignment_has_the_fewest_edits_and_the_documented_partners(written):
    for wanted in TEXTS:
        best = min(
            alignments(written, wanted),
            key=lambda partners: (
                edits_of(partners, written, wanted),
                preference(partners, wanted),
            ),
        )
        assert align(written, wanted) == list(best)


def test_an_element_without_partner_comes_as_late_as_possible():
    # As few edits: [None, 0, 1].
    assert align("aba", "bab") == [1, 2, None]
