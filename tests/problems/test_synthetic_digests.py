"""The synthetic problems' text never changes: shards and results depend on it."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from t2t_repro import catalogue

# SHA-256 of all dev and test pairs, and of the first 5,000 training pairs.
FIRST_TRAINING_PAIRS = 5_000
DIGESTS = {
    "translate_ende_synthetic": {
        "train": "2f306590821e8f494257b0d7bf9a171295541e8b6fbe0c2ea343d7047e8f28e7",
        "dev": "9db3c260a8967a5aefcacc12c50cd93724420eddba97b5ee7606e9025295a9ee",
        "test": "b5449035dc38ca2636120037c1c55c3ef8b976bfdc8b49be03a3f2406abea497",
    },
    "parsing_synthetic": {
        "train": "1b22f165f0dfe32d459fda6c6caf2b620b3a4618032b909f65cc672dedcfe02c",
        "dev": "bf560bfb95131fa22cbdf35e175d82df98b35c4f07a1ce883e07e9519860df3f",
        "test": "cc1dbbcbcb810e68a93d87e845d4973bb2ecb26299faf483fd112a9cc375bb20",
    },
}


def digest(name: str, split: str) -> str:
    """Return the SHA-256 of the pairs of a split, one "source TAB target" per line."""
    pairs = catalogue.problem(name).pairs(split, None)
    if split == "train":
        pairs = itertools.islice(pairs, FIRST_TRAINING_PAIRS)
    lines = [f"{source}\t{target}\n" for source, target in pairs]
    assert len(lines) == (FIRST_TRAINING_PAIRS if split == "train" else 500)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", DIGESTS)
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_pairs_of_the_synthetic_problems_never_change(name, split):
    assert digest(name, split) == DIGESTS[name][split]
