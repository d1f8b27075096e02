"""The length penalty against values computed by hand."""

from __future__ import annotations

import numpy as np

from t2t_repro.decoding.hypothesis import length_penalty


def test_the_length_penalty_is_that_of_wu_et_al():
    np.testing.assert_allclose(
        length_penalty(np.array([1, 7, 25]), 0.5), [1.0, 2**0.5, 5**0.5], rtol=1e-6
    )
    np.testing.assert_array_equal(length_penalty(np.array([1, 99]), 0.0), [1.0, 1.0])
