"""Three pairs with 15 source tokens and 12 target tokens."""

from __future__ import annotations

import tensorflow as tf

from tests.support.tiny_model import padded, random_sentences

BATCH = {
    "inputs": tf.constant(padded(random_sentences(1, [5, 3, 7]))),
    "targets": tf.constant(padded(random_sentences(2, [4, 6, 2]))),
}
