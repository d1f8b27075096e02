"""Input layers of the Transformer, and the softmax, which may share their matrix.

Paper sections 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from t2t_repro.constants import ColumnOrder, PositionKind
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.positions import CountedPositions, Positions
from t2t_repro.layers.residual import Dropout, SymbolDropout
from t2t_repro.models.token_counters import TokenCounter

_COLUMNS: tuple[ColumnOrder, ...] = get_args(ColumnOrder)


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
    logit_bias: bool,
    dtype: object,
) -> TokenMatrices:
    """Make the layers that hold the matrices.

    Args:
        source_vocab_size: Number of rows of the source embedding.
        target_vocab_size: Number of rows of the target embedding and of the softmax.
        hidden_size: Width of a row (d_model).
        tied: Whether all three are one layer, which needs equal vocabularies.
        logit_bias: Whether the logits have a bias.
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

    def matrix(name: str, vocab_size: int, bias: bool = False) -> TokenEmbedding:
        return TokenEmbedding(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            logit_bias=bias,
            name=name,
            dtype=dtype,
        )

    if tied:
        shared = matrix("shared_embedding", target_vocab_size, logit_bias)
        return TokenMatrices(shared, shared, shared)
    return TokenMatrices(
        matrix("source_embedding", source_vocab_size),
        matrix("target_embedding", target_vocab_size),
        matrix("softmax", target_vocab_size, logit_bias),
    )


class InputLayers(NamedTuple):
    """Layers between the token ids of a side and its stack, besides the embedding.

    Attributes:
        symbols: Dropout of token ids.
        positions: Encodings of positions counted in tokens.
        counted: Encodings of positions counted in something else.
        dropout: Dropout of the sum of embeddings and encodings.
    """

    symbols: SymbolDropout
    positions: Positions
    counted: list[CountedPositions]
    dropout: Dropout


def input_layers(
    side: str,
    vocab_size: int,
    counters: Sequence[TokenCounter],
    *,
    hidden_size: int,
    positions: PositionKind,
    max_positions: int,
    symbol_dropout: float,
    dropout: float,
    dtype: object,
) -> InputLayers:
    """Make the layers of one side.

    Args:
        side: "source" or "target", for the names of the layers.
        vocab_size: Size of the side's vocabulary.
        counters: Counters that positions are also encoded by, at most two.
        hidden_size: Width of the embeddings (d_model).
        positions: Kind of `layers.Positions`.
        max_positions: Number of positions, if they are learned.
        symbol_dropout: Probability with which a token's embedding is zero.
        dropout: Dropout of the sum of embeddings and encodings.
        dtype: Dtype or dtype policy.
    """
    counted = [
        CountedPositions(
            hidden_size=hidden_size,
            vocab_size=vocab_size,
            plus=counter.plus,
            minus=counter.minus,
            columns=_COLUMNS[number],
            name=f"{side}_counted_{number}",
            dtype=dtype,
        )
        for number, counter in enumerate(counters)
    ]
    return InputLayers(
        symbols=SymbolDropout(symbol_dropout, name=f"{side}_symbols", dtype=dtype),
        positions=Positions(
            hidden_size=hidden_size,
            kind=positions,
            max_length=max_positions,
            name=f"{side}_positions",
            dtype=dtype,
        ),
        counted=counted,
        dropout=Dropout(dropout, name=f"{side}_dropout", dtype=dtype),
    )
