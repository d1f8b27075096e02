from __future__ import annotations

import numpy as np
import tensorflow as tf

from t2t_repro.features.saved_model.scored_pairs import map_groups

SPECS = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 2], tf.string)]


def run(lengths, group_size):
    """Return results that name their row, and the rows of each group."""
    groups = []

    def compute(chosen):
        tf.py_function(lambda rows: groups.append(rows.numpy().tolist()), [chosen], [])
        texts = tf.strings.as_string(tf.stack([chosen, chosen * 10], axis=1))
        return chosen * 7, texts

    @tf.function
    def mapped():
        return map_groups(compute, tf.constant(lengths, tf.int32), group_size, SPECS)

    numbers, texts = mapped()
    return numbers.numpy().tolist(), texts.numpy().tolist(), groups


def test_a_group_is_no_larger_than_its_rows_times_the_longest():
    lengths = np.random.default_rng(0).integers(1, 20, 50)
    *_, groups = run(lengths, 40)
    assert sorted(row for group in groups for row in group) == [*range(50)]
    assert all(len(group) * max(lengths[group]) <= 40 for group in groups)


def test_groups_are_full_and_the_longest_rows_come_first():
    *_, groups = run([3, 1, 6, 2, 6, 1], 12)
    assert groups == [[2, 4], [0, 3, 1, 5]]


def test_a_row_that_is_longer_than_a_group_is_computed_alone():
    *_, groups = run([2, 9, 2], 4)
    assert groups == [[1], [0, 2]]
