"""What the layers of an encoder or a decoder are made of, written once."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.layers.attention import Compatibility


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Options that every layer of a stack shares; keyword arguments of the layers.

    Attributes:
        hidden_size: Width of the representation (d_model).
        filter_size: Inner width of the feed-forward network (d_ff); rows of attention
            over parameters (n_p).
        num_heads: Attention heads (h); branches of branched attention (M).
        key_channels: Width of queries and keys over all heads (h d_k).
        value_channels: Width of values over all heads (h d_v).
        norm: "post" (the paper) or "pre"; see `ResidualConnection`.
        norm_epsilon: Of the layer normalisations.
        residual_dropout: Dropout on each sublayer's output (P_drop).
        attention_dropout: Dropout on attention weights.
        relu_dropout: Dropout after the ReLU.
        compatibility: Of queries with keys; see `MultiheadAttention`.
        neighbourhood: Positions that self-attention sees round each one (r), odd;
            0 = all.
        blocked: Whether restricted self-attention computes in blocks (the same
            numbers as under a mask, in O(r n d)).
        feed_forward: "dense_relu_dense" (the paper) or "parameter_attention".
        parameter_attention_heads: Heads of attention over parameters (h_p).
        parameter_attention_key_channels: Its h_p d_pk.
        parameter_attention_value_channels: Its h_p d_pv.
        branched: "none", or how branched attention's feed-forward network is cut:
            "split" or "shared"; see `BranchedAttention`.
        branched_in_decoder: Which attention of a decoder layer is branched, "memory"
            or "self"; the other stays multi-head attention.
        branch_normalization: "simplex" or "softmax"; see `BranchedAttention`.
        branch_top_k: Branches that are summed; 0 = all.
    """

    hidden_size: int
    filter_size: int
    num_heads: int
    key_channels: int
    value_channels: int
    norm: str = "post"
    norm_epsilon: float = 1e-6
    residual_dropout: float = 0.0
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    compatibility: Compatibility = "scaled_dot_product"
    neighbourhood: int = 0
    blocked: bool = True
    feed_forward: str = "dense_relu_dense"
    parameter_attention_heads: int = 0
    parameter_attention_key_channels: int = 0
    parameter_attention_value_channels: int = 0
    branched: str = "none"
    branched_in_decoder: str = "memory"
    branch_normalization: str = "simplex"
    branch_top_k: int = 0
