"""Options that all layers of an encoder or a decoder share."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t2t_repro.constants import (
    Branched,
    BranchedInDecoder,
    BranchGain,
    BranchNormalization,
    BranchResidual,
    BranchWeightsInit,
    Compatibility,
    FeedForwardKind,
    Norm,
    branch_contradiction,
    check_choice,
    network_in_attention,
)


class AttentionRole(enum.Enum):
    """Place of an attention sublayer in the model (paper section 3.2.3)."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    MEMORY = "memory"

    @property
    def is_self_attention(self) -> bool:
        """Whether queries and keys come from the same sequence."""
        return self is not AttentionRole.MEMORY

    @property
    def is_causal(self) -> bool:
        """Whether a position cannot see later positions."""
        return self is AttentionRole.DECODER_SELF


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Options that all layers of a stack share.

    Attributes:
        hidden_size: Width of the representation (d_model).
        filter_size: Inner width of the feed-forward network (d_ff), or rows of
            attention over parameters (n_p).
        num_heads: Number of attention heads (h), or branches of branched attention (M).
        key_channels: Width of queries and keys over all heads (h d_k).
        value_channels: Width of values over all heads (h d_v).
        norm: "post" (the paper) or "pre"; see `ResidualConnection`.
        norm_epsilon: Added to the variance in layer normalization.
        residual_dropout: Dropout on the output of every sublayer (P_drop).
        attention_dropout: Dropout on attention weights.
        relu_dropout: Dropout after the ReLU.
        compatibility: Function of queries and keys; see `MultiheadAttention`.
        self_attention: Name of the self-attention of both stacks in
            `registry.attentions`: "dot_product" (the paper), "restricted",
            "restricted_masked", or a name that a user's package registers.
        neighbourhood: Number of positions that each position sees in restricted
            self-attention (r), odd; 0 means all.
        feed_forward: "dense_relu_dense" (the paper) or "parameter_attention".
        parameter_attention_heads: Number of heads of attention over parameters (h_p).
        parameter_attention_key_channels: Width of its keys over all heads (h_p d_pk).
        parameter_attention_value_channels: Width of its values over all heads
            (h_p d_pv).
        branched: "none", or the form of the feed-forward network inside branched
            attention, "split" or "shared"; see `BranchedAttention`.
        branched_in_decoder: Attention of a decoder layer that is branched, "memory" or
            "self". The other one is multi-head attention.
        branch_normalization: "simplex" or "softmax"; see `BranchedAttention`.
        branch_top_k: Number of branches that are summed; 0 means all.
        branch_residual: Residual connections and normalizations of the branches:
            "around" or "inside" (see `BranchedAttention`), or "per_branch" or "shared"
            (see `layers.weighted`).
        branch_gain: "none"; "unit", which multiplies kappa and alpha by M; or
            "initial", which multiplies the initial W^O and W_2 by M.
        branch_weights_init: Initial kappa and alpha; see `Branches`.

    Raises:
        ValueError: If an option has an unknown value, or if two options contradict
            each other.
    """

    hidden_size: int
    filter_size: int
    num_heads: int
    key_channels: int
    value_channels: int
    norm: Norm = "post"
    norm_epsilon: float = 1e-6
    residual_dropout: float = 0.0
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    compatibility: Compatibility = "scaled_dot_product"
    self_attention: str = "dot_product"
    neighbourhood: int = 0
    feed_forward: FeedForwardKind = "dense_relu_dense"
    parameter_attention_heads: int = 0
    parameter_attention_key_channels: int = 0
    parameter_attention_value_channels: int = 0
    branched: Branched = "none"
    branched_in_decoder: BranchedInDecoder = "memory"
    branch_normalization: BranchNormalization = "simplex"
    branch_top_k: int = 0
    branch_residual: BranchResidual = "around"
    branch_gain: BranchGain = "none"
    branch_weights_init: BranchWeightsInit = "random"

    def __post_init__(self) -> None:
        check_choice("norm", self.norm, Norm)
        check_choice("compatibility", self.compatibility, Compatibility)
        check_choice("feed_forward", self.feed_forward, FeedForwardKind)
        check_choice("branched", self.branched, Branched)
        check_choice("branched_in_decoder", self.branched_in_decoder, BranchedInDecoder)
        check_choice(
            "branch_normalization", self.branch_normalization, BranchNormalization
        )
        check_choice("branch_residual", self.branch_residual, BranchResidual)
        check_choice("branch_gain", self.branch_gain, BranchGain)
        check_choice("branch_weights_init", self.branch_weights_init, BranchWeightsInit)
        if self.neighbourhood and self.self_attention == "dot_product":
            raise ValueError(
                "`neighbourhood` needs another `self_attention` than 'dot_product', "
                "which attends to all positions. "
                f"Received: neighbourhood={self.neighbourhood}"
            )
        if self.branched != "none" and self.self_attention != "dot_product":
            raise ValueError(
                "`branched` takes the place of self-attention, so `self_attention` "
                f"must be 'dot_product'. Received: branched={self.branched!r}, "
                f"self_attention={self.self_attention!r}"
            )
        problem = branch_contradiction(
            self.branched, self.branch_residual, self.branch_gain
        )
        if problem:
            raise ValueError(
                f"{problem} Received: branched={self.branched!r}, "
                f"branch_residual={self.branch_residual!r}, "
                f"branch_gain={self.branch_gain!r}"
            )

    @property
    def network_in_attention(self) -> bool:
        """Whether branched attention contains the feed-forward network."""
        return network_in_attention(self.branched, self.branch_residual)

    @property
    def network_role(self) -> AttentionRole:
        """The attention of a decoder layer after which a separate network comes.

        A network with one input per branch must come after the branched attention.
        Any other network keeps its place in the Transformer.
        """
        branches = self.branched != "none" and self.branch_residual == "per_branch"
        if branches and self.branched_in_decoder == "self":
            return AttentionRole.DECODER_SELF
        return AttentionRole.MEMORY

    def is_branched(self, role: AttentionRole) -> bool:
        """Return whether the attention of this role is branched attention."""
        if self.branched == "none":
            return False
        in_memory = self.branched_in_decoder == "memory"
        in_decoder = AttentionRole.MEMORY if in_memory else AttentionRole.DECODER_SELF
        return role in (AttentionRole.ENCODER_SELF, in_decoder)


def with_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a layer with its `LayerOptions` made from a dict."""
    return {**config, "options": LayerOptions(**config["options"])}
