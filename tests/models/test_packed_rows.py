"""A packed row gives every pair the logits that it has in a row of its own."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from t2t_repro.data.packing import pack_pairs
from tests.models.test_transformer import ALL_KINDS, DISTINCT
from tests.support.tiny_model import padded, random_sentences, tiny_transformer

LENGTHS = [(5, 3), (7, 8), (2, 6), (9, 4), (1, 1), (6, 7)]
SOURCES = [np.array(x, np.int32) for x in random_sentences(1, [s for s, _ in LENGTHS])]
TARGETS = [np.array(x, np.int32) for x in random_sentences(2, [t for _, t in LENGTHS])]
# Attention in blocks has no mask per query.
KINDS = {
    name: ALL_KINDS[name]
    for name in [*DISTINCT, "learned positions, too few", "concatenated sinusoids"]
    if ALL_KINDS[name].get("self_attention_type") != "restricted"
}


@pytest.fixture(scope="module")
def packed():
    # Sources have less room than targets.
    return pack_pairs(SOURCES, TARGETS, (16, 20), seed=0)


def in_rows_of_their_own(model):
    batch = {"inputs": padded(SOURCES), "targets": padded(TARGETS)}
    logits = keras.ops.convert_to_numpy(model(batch))
    return {
        tuple(target): row[: len(target)]
        for target, row in zip(TARGETS, logits, strict=True)
    }


def places(packed):
    """Yield row, places and ids of every target."""
    for row, segments in enumerate(packed["targets_segmentation"]):
        for segment in range(1, segments.max() + 1):
            here = segments == segment
            yield row, here, tuple(packed["targets"][row][here])


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_has_the_logits_of_a_row_of_its_own(kind, packed):
    model = tiny_transformer(seed=3, **KINDS[kind])
    expected = in_rows_of_their_own(model)
    logits = keras.ops.convert_to_numpy(model(packed))
    found = list(places(packed))
    assert len(found) == len(LENGTHS) > len(packed["inputs"])
    for row, here, ids in found:
        np.testing.assert_allclose(logits[row][here], expected[ids], atol=3e-6)


def test_the_other_pairs_of_a_row_change_nothing(packed):
    model = tiny_transformer(seed=4)
    changed = {name: x.copy() for name, x in packed.items()}
    other = changed["inputs_segmentation"] == 2
    changed["inputs"][other] = 3
    changed["targets"][changed["targets_segmentation"] == 2] = 3
    before, after = (
        keras.ops.convert_to_numpy(model(batch)) for batch in (packed, changed)
    )
    first = packed["targets_segmentation"] == 1
    assert other.any()
    np.testing.assert_array_equal(before[first], after[first])
    assert not np.allclose(
        before[packed["targets_segmentation"] == 2],
        after[packed["targets_segmentation"] == 2],
    )
