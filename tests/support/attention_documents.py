"""Synthetic attention documents, in which one head aligns words."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.numpy_transformer import softmax

Document = dict[str, Any]
SOURCE = [
    *("▁Der", "▁kleine", "▁Hund", "▁läuft", "▁schnell", "▁nach", "▁Haus", "e", "▁."),
    "</s>",
]
TARGET = [
    *("▁The", "▁little", "▁dog", "▁run", "s", "▁home", "▁quick", "ly", "▁."),
    "</s>",
]
# Index of the source token that each target token translates.
ALIGNED = [0, 1, 2, 3, 3, 6, 4, 4, 8, 9]


def words_of(tokens: Sequence[str]) -> list[list[int]]:
    """Return the spans of words: a word starts at a space mark or a special token."""
    starts = [
        i for i, token in enumerate(tokens) if i == 0 or token.startswith(("▁", "<"))
    ]
    ends = [*starts[1:], len(tokens)]
    return [[a, b] for a, b in zip(starts, ends, strict=True)]


def sequence(tokens: Sequence[str]) -> Document:
    text = "".join(t for t in tokens if t != "</s>").replace("▁", " ").strip()
    return {"text": text, "tokens": list(tokens), "words": words_of(tokens)}


def encoded(weights: np.ndarray) -> str:
    return base64.b64encode(weights.astype("<f2").tobytes()).decode("ascii")


def attention_map(kind: str, queries: str, keys: str, weights: np.ndarray) -> Document:
    labels = {
        "encoder_self": "Encoder self-attention",
        "decoder_self": "Decoder self-attention",
        "memory": "Encoder-decoder attention",
    }
    return {
        "kind": kind,
        "label": labels[kind],
        "queries": queries,
        "keys": keys,
        "layers": weights.shape[0],
        "heads": weights.shape[1],
        "weights": encoded(weights),
    }


def make_document(
    *,
    source: Sequence[str] = SOURCE,
    target: Sequence[str] = TARGET,
    aligned: Sequence[int] | None = None,
    layers: int = 3,
    heads: int = 4,
    seed: int = 1,
    sharpness: float = 6.0,
    align_head: tuple[int, int] | None = (1, 2),
    title: str = "dev sentence 1",
) -> Document:
    """Return a document of random attention in which one head aligns words."""
    draw = np.random.default_rng(seed)
    sizes = {"source": len(source), "target": len(target)}

    def scores(queries: str, keys: str) -> np.ndarray:
        shape = (layers, heads, sizes[queries], sizes[keys])
        return draw.normal(size=shape) * 1.5

    encoder = scores("source", "source")
    decoder = scores("target", "target")
    memory = scores("target", "source")
    aligned = ALIGNED if aligned is None else aligned
    if align_head:
        for q, k in enumerate(aligned):
            memory[(*align_head, q, k)] += sharpness
    decoder += np.triu(np.full(decoder.shape[-2:], -np.inf), 1)
    return {
        "version": 1,
        "title": title,
        "score": -3.21,
        "sequences": {
            "source": sequence(source),
            "target": sequence(target),
            "read": {**sequence(["<start>", *target[:-1]]), "text": ""},
        },
        "maps": [
            attention_map("encoder_self", "source", "source", softmax(encoder)),
            attention_map("decoder_self", "target", "read", softmax(decoder)),
            attention_map("memory", "target", "source", softmax(memory)),
        ],
    }
