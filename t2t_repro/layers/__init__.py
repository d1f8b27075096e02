"""The papers' layers: `keras.ops` only, explicit arguments, no hparams."""

from t2t_repro.layers.attention import MultiheadAttention, attention_weights
from t2t_repro.layers.decoder import Decoder, DecoderLayer, LayerCache
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.encoder import Encoder, EncoderLayer
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.masks import causal_mask, padding_mask
from t2t_repro.layers.positions import Positions, sinusoidal_positions
from t2t_repro.layers.residual import ResidualConnection

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerCache",
    "MultiheadAttention",
    "Positions",
    "ResidualConnection",
    "TokenEmbedding",
    "attention_weights",
    "causal_mask",
    "padding_mask",
    "sinusoidal_positions",
]
