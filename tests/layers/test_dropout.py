"""The masks are as random as training needs, and a function of the seed alone."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from t2t_repro.layers.residual import (
    Dropout,
    SymbolDropout,
    hash_words,
    random_words,
)

SHAPE = (64, 40, 100)


def words(seed: tuple[int, int], shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    drawn = random_words(ops.zeros(shape), ops.convert_to_tensor(seed, "uint32"))
    return ops.convert_to_numpy(drawn)


def test_the_hash_is_the_published_function():
    def reference(x: int) -> int:
        x ^= x >> 16
        x = x * 0x21F0AAAD % 2**32
        x ^= x >> 15
        x = x * 0xD35A2D97 % 2**32
        return x ^ x >> 15

    inputs = [0, 1, 2, 12345, 2**31, 2**32 - 1]
    hashed = hash_words(ops.convert_to_tensor(inputs, dtype="uint32"))
    assert ops.convert_to_numpy(hashed).tolist() == [reference(x) for x in inputs]


@pytest.mark.parametrize("seed", [(0, 0), (0, 1), (1, 0), (2**31 + 5, 77)])
def test_words_are_uniform(seed):
    counts = np.bincount(words(seed).ravel() >> 24, minlength=256)
    expected = counts.sum() / 256
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    # 255 degrees of freedom: mean 255, standard deviation 22.6.
    assert abs(chi_squared - 255) < 5 * 22.6


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_neighbours_along_every_axis_are_independent(axis):
    kept = (words((3, 9)) > 0.3 * 2**32).astype(float)
    first = np.take(kept, range(kept.shape[axis] - 1), axis).ravel()
    second = np.take(kept, range(1, kept.shape[axis]), axis).ravel()
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(first.size)


@pytest.mark.parametrize("other", [(3, 10), (4, 9), (9, 3), (3 + 2**31, 9)])
def test_steps_layers_and_replicas_get_independent_masks(other):
    # A generator increments its second number at every step;
    # seed_dropout_per_replica adds the replica's number to the first.
    kept, also_kept = (words(seed).ravel() > 0.3 * 2**32 for seed in ((3, 9), other))
    correlation = np.corrcoef(kept.astype(float), also_kept.astype(float))[0, 1]
    assert abs(correlation) < 5 / np.sqrt(kept.size)


def test_the_same_seed_draws_the_same_words():
    np.testing.assert_array_equal(words((5, 6)), words((5, 6)))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_rate_is_kept_and_the_mean_unchanged(rate):
    dropped = ops.convert_to_numpy(
        Dropout(rate, seed=1)(ops.ones(SHAPE), training=True)
    )
    noise = np.sqrt(rate * (1 - rate) / dropped.size)
    assert abs((dropped == 0).mean() - rate) < 5 * noise
    np.testing.assert_allclose(dropped[dropped > 0], 1 / (1 - rate), rtol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_dropped_ids_become_padding_and_the_others_stay(rate):
    ids = np.arange(1, 64_001, dtype="int32").reshape(64, 1000)
    dropped = ops.convert_to_numpy(SymbolDropout(rate, seed=1)(ids, training=True))
    assert dropped.dtype == np.int32
    np.testing.assert_array_equal(dropped[dropped > 0], ids[dropped > 0])
    noise = np.sqrt(rate * (1 - rate) / ids.size)
    assert abs((dropped == 0).mean() - rate) < 5 * noise
    for kept in (
        SymbolDropout(rate)(ids),
        SymbolDropout(rate)(ids, training=False),
        SymbolDropout(0.0)(ids, training=True),
    ):
        np.testing.assert_array_equal(kept, ids)


def test_every_call_draws_another_mask():
    layer = Dropout(0.5, seed=1)
    first, second = (layer(ops.ones(SHAPE), training=True) for _ in range(2))
    assert np.mean(ops.convert_to_numpy(first) == ops.convert_to_numpy(second)) < 0.51


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_a_rate_that_drops_everything_is_refused(rate):
    with pytest.raises(ValueError, match="`rate` must be"):
        Dropout(rate)


def test_the_configuration_makes_the_same_layer():
    config = Dropout(0.3, seed=7, name="here").get_config()
    layer = Dropout.from_config(config)
    assert (layer.rate, layer.seed, layer.name) == (0.3, 7, "here")


def test_nothing_is_dropped_outside_training_or_at_rate_zero():
    x = ops.ones((2, 3))
    assert Dropout(0.5)(x, training=False) is x
    assert Dropout(0.5)(x) is x
    assert Dropout(0.0)(x, training=True) is x


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_stays_half_precision(dtype):
    layer = Dropout(0.3, seed=1, dtype=dtype)
    dropped = layer(ops.ones((8, 8)), training=True)
    assert keras.backend.standardize_dtype(dropped.dtype) == layer.compute_dtype
