"""Two embeddings and the softmax, which may share a matrix (paper section 3.4)."""

from __future__ import annotations

from typing import NamedTuple

from t2t_repro.layers.embedding import TokenEmbedding


class TokenMatrices(NamedTuple):
    """Matrices with one row per token.

    Attributes:
        source_embedding: Embedding of the source.
        target_embedding: Embedding of the target.
        softmax: Matrix whose products with the decoder's output are the logits.
    """

    source_embedding: TokenEmbedding
    target_embedding: TokenEmbedding
    softmax: TokenEmbedding


def token_matrices(
    *,
    source_vocab_size: int,
    target_vocab_size: int,
    hidden_size: int,
    tied: bool,
    dtype: object,
) -> TokenMatrices:
    """Make the layers that hold the matrices.

    Args:
        source_vocab_size: Number of rows of the source embedding.
        target_vocab_size: Number of rows of the target embedding and of the softmax.
        hidden_size: Width of a row (d_model).
        tied: Whether all three are one layer, which needs equal vocabularies.
        dtype: Dtype or dtype policy.

    Raises:
        ValueError: If embeddings are tied and the vocabularies differ.
    """
    if tied and source_vocab_size != target_vocab_size:
        raise ValueError(
            "Tied embeddings need equal vocabularies. Received: "
            f"source_vocab_size={source_vocab_size}, "
            f"target_vocab_size={target_vocab_size}"
        )

    def matrix(name: str, vocab_size: int) -> TokenEmbedding:
        return TokenEmbedding(
            vocab_size=vocab_size, hidden_size=hidden_size, name=name, dtype=dtype
        )

    if tied:
        shared = matrix("shared_embedding", target_vocab_size)
        return TokenMatrices(shared, shared, shared)
    return TokenMatrices(
        matrix("source_embedding", source_vocab_size),
        matrix("target_embedding", target_vocab_size),
        matrix("softmax", target_vocab_size),
    )
