"""A Transformer of a few hundred weights, and its batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2t_repro.models.transformer import Transformer

VOCAB_SIZE = 11
OPTIONS: dict[str, Any] = {
    "source_vocab_size": VOCAB_SIZE,
    "target_vocab_size": VOCAB_SIZE,
    "hidden_size": 8,
    "filter_size": 12,
    "num_heads": 2,
    "attention_key_channels": 8,
    "attention_value_channels": 8,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
}


def tiny_arguments(**changes: Any) -> dict[str, Any]:
    return OPTIONS | changes


def tiny_transformer(seed: int = 0, **changes: Any) -> Transformer:
    """Make a model with random weights, including biases and gains."""
    model = Transformer(**OPTIONS | changes)
    randomize(model, seed)
    return model


def randomize(layer, seed: int) -> None:
    """Set all weights to random values that keep activations near 1."""
    random = np.random.default_rng(seed)
    for variable in layer.weights:
        if variable.name == "seed_generator_state":
            continue
        spread = variable.shape[0] ** -0.5 if variable.name == "kernel" else 0.3
        values = random.normal(scale=spread, size=variable.shape)
        variable.assign(values + (1.0 if variable.name == "gamma" else 0.0))


def weights_by_name(model) -> dict[str, np.ndarray]:
    """Return the arrays of a model by their path inside it."""
    return {v.path.partition("/")[2]: v.numpy() for v in model.weights}


def assert_cached_equals_whole(model, batch, append: bool = False) -> None:
    """Compare decoding token by token with one pass over all targets."""
    expected, targets = np.array(model(batch)), batch["targets"]
    rows, length = targets.shape
    cache, slots = model.initial_cache(batch["inputs"]), 0
    ids = np.zeros((rows, 1), np.int32)
    for position in range(length):
        if append:
            slots = position + 1
        elif position == slots:
            slots = min(length, slots + 4)
            cache = model.grow_cache(cache, slots)
        history = np.broadcast_to(np.arange(slots) <= position, (rows, 1, slots))
        place = np.int32(position)
        logits, cache = model.decode_step(ids, place, history, cache, append)
        np.testing.assert_allclose(logits[:, 0], expected[:, position], atol=1e-5)
        ids = targets[:, position : position + 1]


def padded(sentences: list[list[int]], length: int | None = None) -> np.ndarray:
    """Put lists of ids into int32 `[batch, length]`, padded with zeros."""
    length = length or max(map(len, sentences))
    batch = np.zeros((len(sentences), length), np.int32)
    for row, sentence in zip(batch, sentences, strict=True):
        row[: len(sentence)] = sentence
    return batch


def random_sentences(
    seed: int, lengths: list[int], vocab_size: int = VOCAB_SIZE
) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [[*map(int, random.integers(2, vocab_size, n - 1)), 1] for n in lengths]
