"""Attention between words, for tests of alignments."""

from __future__ import annotations

import numpy as np

from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
)


def tokens_of(text: str) -> TokenSequence:
    """Make one token per word, and EOS."""
    words = tuple(f"▁{word}" for word in text.split())
    spans = tuple((index, index + 1) for index in range(len(words) + 1))
    return TokenSequence(text, (*words, "</s>"), spans)


def attention_of(source: str, target: str, memory: np.ndarray) -> Attention:
    """Make an attention whose only interesting part is `memory`."""
    source_tokens, target_tokens = tokens_of(source), tokens_of(target)
    s, t = len(source_tokens.tokens), len(target_tokens.tokens)
    assert memory.shape[2:] == (t, s)
    shape = memory.shape[:2]
    return Attention(
        source=source_tokens,
        target=target_tokens,
        encoder_self=np.zeros((*shape, s, s), np.float32),
        decoder_self=np.zeros((*shape, t, t), np.float32),
        memory=memory.astype(np.float32),
        score=0.0,
    )
