from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.support.numpy_transformer import NumpyTransformer, smoothed_cross_entropy
from tests.support.tiny_model import (
    VOCAB_SIZE,
    padded,
    random_sentences,
    tiny_transformer,
    weights_by_name,
)
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import SmoothedCrossEntropy

SOURCES = random_sentences(1, [6, 1, 4])
TARGETS = random_sentences(2, [3, 7, 5])
BATCH = {"inputs": padded(SOURCES), "targets": padded(TARGETS)}

KINDS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "concatenated sinusoids": {"positions": "concatenated"},
    "learned positions, too few": {"positions": "learned", "max_positions": 5},
    "no positions": {"positions": "none"},
    "narrow keys": {"key_channels": 4},
    "wide values": {"value_channels": 16},
    "not tied": {"tie_embeddings": False},
    "two vocabularies": {
        "tie_embeddings": False,
        "source_vocab_size": 17,
        "norm": "pre",
        "positions": "concatenated",
        "key_channels": 6,
        "value_channels": 10,
    },
    "another epsilon": {"norm_epsilon": 0.1},
    "many heads": {"num_heads": 8},
}


def reference_of(model: Transformer, options: dict) -> NumpyTransformer:
    return NumpyTransformer(
        weights_by_name(model),
        num_heads=options.get("num_heads", 2),
        num_layers=2,
        norm=options.get("norm", "post"),
        positions=options.get("positions", "interleaved"),
        epsilon=options.get("norm_epsilon", 1e-6),
    )


def logits_of(model: Transformer, batch: dict, **options) -> np.ndarray:
    return keras.ops.convert_to_numpy(model(batch, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_equals_the_numpy_reference(kind):
    model = tiny_transformer(seed=3, **KINDS[kind])
    reference = reference_of(model, KINDS[kind])
    logits = logits_of(model, BATCH)
    for row, source, target in zip(logits, SOURCES, TARGETS, strict=True):
        expected = reference.logits(source, target)
        np.testing.assert_allclose(row[: len(target)], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_model_and_loss_equal_the_numpy_reference(smoothing):
    model = tiny_transformer(seed=4)
    reference = reference_of(model, {})
    loss = SmoothedCrossEntropy(smoothing)(BATCH["targets"], model(BATCH))
    expected = [
        smoothed_cross_entropy(reference.logits(source, target), target, smoothing)
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    assert float(loss) == pytest.approx(np.concatenate(expected).mean(), abs=1e-5)
