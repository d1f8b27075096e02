from __future__ import annotations

import numpy as np

from t2t_repro.layers import causal_mask, padding_mask


def test_padding_may_not_be_attended_to():
    mask = padding_mask(np.array([[5, 2, 1, 0], [7, 1, 0, 0]], "int32"))
    expected = [[[[True, True, True, False]]], [[[True, True, False, False]]]]
    np.testing.assert_array_equal(mask, expected)


def test_a_position_sees_itself_and_earlier_positions():
    expected = [[[[True, False, False], [True, True, False], [True, True, True]]]]
    np.testing.assert_array_equal(causal_mask(3), expected)
