"""Layers of the papers, in `keras.ops`, for any Keras model."""

from t2t_repro.layers.attention import (
    BlockedAttention,
    MultiHeadAttention,
    causal_mask,
    dot_product,
    masked_softmax,
    neighbourhood_mask,
    padding_mask,
    scaled_dot_product,
)
from t2t_repro.layers.branches import (
    BranchedFeedForward,
    NearUniformOnSimplex,
    RandomOnSimplex,
    Simplex,
    project_to_simplex,
)
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.encoder_decoder import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    LayerCache,
)
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import AttentionRole
from t2t_repro.layers.parameter_attention import ParameterAttention
from t2t_repro.layers.positions import CountedPositions, Positions, sinusoidal_positions
from t2t_repro.layers.residual import Dropout, ResidualConnection
from t2t_repro.layers.sublayers import LayerOptions
from t2t_repro.layers.weighted import (
    BranchedAttention,
    WeightedFeedForward,
    WeightedHeads,
)

__all__ = [
    "AttentionRole",
    "BlockedAttention",
    "BranchedAttention",
    "BranchedFeedForward",
    "CountedPositions",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerCache",
    "LayerOptions",
    "MultiHeadAttention",
    "NearUniformOnSimplex",
    "ParameterAttention",
    "Positions",
    "RandomOnSimplex",
    "ResidualConnection",
    "Simplex",
    "TokenEmbedding",
    "WeightedFeedForward",
    "WeightedHeads",
    "causal_mask",
    "dot_product",
    "masked_softmax",
    "neighbourhood_mask",
    "padding_mask",
    "project_to_simplex",
    "scaled_dot_product",
    "sinusoidal_positions",
]
