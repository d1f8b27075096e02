from __future__ import annotations

import itertools

import numpy as np
import pytest
from keras import ops

from t2t_repro.layers import RandomOnSimplex, Simplex, project_to_simplex

RANDOM = np.random.default_rng(0)


def projected(x):
    return np.asarray(project_to_simplex(ops.convert_to_tensor(x, "float32")))


def grid_on_the_simplex(size, parts):
    points = itertools.product(range(parts + 1), repeat=size - 1)
    rows = [(*p, parts - sum(p)) for p in points if sum(p) <= parts]
    return np.array(rows) / parts


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_no_point_of_a_fine_grid_is_nearer(size, scale):
    grid = grid_on_the_simplex(size, 60)
    for x in RANDOM.normal(scale=scale, size=(20, size)):
        found = projected(x)
        assert found.sum() == pytest.approx(1.0, abs=1e-5)
        assert found.min() >= 0.0
        best = np.linalg.norm(grid - x, axis=1).min()
        assert np.linalg.norm(found - x) <= best + 1e-5


@pytest.mark.parametrize("size", [1, 2, 8, 16])
def test_a_point_of_the_simplex_stays_where_it_is(size):
    x = RANDOM.dirichlet(np.ones(size))
    np.testing.assert_allclose(projected(x), x, atol=1e-6)


def test_far_from_the_origin_the_sum_is_still_one():
    x = np.array([1e8, 0.0, 1e8, -1e8], "float32")
    np.testing.assert_array_equal(project_to_simplex(x), [0.5, 0.0, 0.5, 0.0])


def test_the_constraint_is_the_projection():
    x = ops.convert_to_tensor([0.9, 0.4, -0.3])
    np.testing.assert_array_equal(Simplex()(x), project_to_simplex(x))


def test_weights_begin_at_random_on_the_simplex():
    draws = [np.asarray(RandomOnSimplex(seed)((8,), "float32")) for seed in (1, 2)]
    for draw in draws:
        assert draw.sum() == pytest.approx(1.0, abs=1e-6)
        assert draw.min() >= 0.0
    assert not np.allclose(*draws)
