"""Measurements of Table 1 that do not depend on a clock."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.features.reproduction.layer_complexity import (
    KERNEL_SIZE,
    NEIGHBOURHOOD,
    SEQUENCE_LAYERS,
    exponent,
    longest_path,
    sequential_operations,
)

KINDS = {kind.label.partition(",")[0]: kind for kind in SEQUENCE_LAYERS}


def test_an_exponent_is_the_slope_of_the_logarithms():
    assert exponent({2: 3 * 2**1.5, 4: 3 * 4**1.5, 8: 3 * 8**1.5}) == pytest.approx(1.5)


@pytest.mark.parametrize("length", [9, 27, pytest.param(81, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("self-attention", lambda n: 1),
        ("recurrent (GRU)", lambda n: n - 1),
        ("convolution", lambda n: np.ceil((n - 1) / (KERNEL_SIZE // 2))),
        ("separable convolution", lambda n: np.ceil((n - 1) / (KERNEL_SIZE // 2))),
        # Dilations 1, 3, ..., n / 3 reach (n - 1) / 2; a second stack reaches the rest.
        ("dilated convolutions", lambda n: 2 * round(np.log(n) / np.log(KERNEL_SIZE))),
        (
            "restricted self-attention",
            lambda n: np.ceil((n - 1) / (NEIGHBOURHOOD // 2)),
        ),
    ],
)
def test_the_longest_path_follows_from_the_reach_of_a_layer(label, expected, length):
    assert longest_path(KINDS[label], length) == expected(length)


def test_only_recurrent_layers_have_more_sequential_operations_at_greater_length():
    for label, kind in KINDS.items():
        counts = [sequential_operations(kind, length) for length in (4, 8)]
        if label == "recurrent (GRU)":
            assert counts[1] > 1.7 * counts[0]
        else:
            assert counts[1] == counts[0], label
