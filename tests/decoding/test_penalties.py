"""The penalties of coverage and length, against NumPy and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.decoding.coverage import coverage_penalty
from t2t_repro.decoding.hypothesis import length_penalty


def test_the_coverage_penalty_is_that_of_wu_et_al():
    coverage = np.random.default_rng(0).uniform(0.01, 2.0, (3, 2, 5)).astype("float32")
    expected = 0.3 * np.log(np.minimum(coverage, 1.0)).sum(axis=-1)
    found = np.array(coverage_penalty(coverage, 0.3))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("coverage", "penalty"), [([1.0, 1.0], 0.0), ([7.0, 0.5], -2 * 0.6931472)]
)
def test_more_attention_than_1_counts_as_1(coverage, penalty):
    found = float(coverage_penalty(np.array(coverage, "float32"), 2.0))
    assert found == pytest.approx(penalty, abs=1e-6)


def test_a_token_without_attention_has_a_finite_penalty():
    found = float(coverage_penalty(np.zeros(1, "float32"), 1.0))
    assert -100.0 < found < -50.0


def test_the_length_penalty_is_that_of_wu_et_al():
    np.testing.assert_allclose(
        length_penalty(np.array([1, 7, 25]), 0.5), [1.0, 2**0.5, 5**0.5], rtol=1e-6
    )
    np.testing.assert_array_equal(length_penalty(np.array([1, 99]), 0.0), [1.0, 1.0])
