"""Layers of the papers, in `keras.ops`, with explicit arguments."""

from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.attention_functions import (
    dot_product,
    masked_softmax,
    scaled_dot_product,
)
from t2t_repro.layers.blocked_attention import BlockedAttention
from t2t_repro.layers.branch_networks import BranchedFeedForward
from t2t_repro.layers.branched_attention import BranchedAttention
from t2t_repro.layers.decoder import Decoder
from t2t_repro.layers.decoder_layer import DecoderLayer, LayerCache
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.encoder import Encoder, EncoderLayer
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.masks import causal_mask, neighbourhood_mask, padding_mask
from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.parameter_attention import ParameterAttention
from t2t_repro.layers.positions import CountedPositions, Positions, sinusoidal_positions
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.simplex import (
    NearUniformOnSimplex,
    RandomOnSimplex,
    Simplex,
    project_to_simplex,
)
from t2t_repro.layers.weighted_sublayers import WeightedFeedForward, WeightedHeads

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
    "MultiheadAttention",
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
