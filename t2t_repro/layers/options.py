"""The options that choose sublayers, and the base class of sublayers."""

from __future__ import annotations

import enum
import functools
import inspect
from dataclasses import dataclass
from typing import Any, Self

import keras

from t2t_repro.constants import (
    Activation,
    Branched,
    BranchedInDecoder,
    BranchGain,
    BranchResidual,
    FeedForwardKind,
    Norm,
    check_choice,
    layer_contradictions,
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
class LayerStructure:
    """The options that choose the sublayers of encoder and decoder layers.

    `LayerOptions` adds the keyword arguments of the sublayers, under their names.

    Attributes:
        num_heads: Number of attention heads (h), or branches of branched attention (M).
        filter_size: Inner width of the feed-forward network (d_ff), or rows of
            attention over parameters (n_p).
        hidden_size: Width of the representation (d_model); None = that of the input.
        norm: "post" (the paper) or "pre"; see `ResidualConnection`.
        norm_epsilon: Added to the variance in layer normalization.
        layer_prepostprocess_dropout: Dropout on the output of every sublayer (P_drop).
        self_attention_type: Self-attention of both stacks: "dot_product" (the paper),
            "restricted", "restricted_masked", or a name that a user's package
            registers.
        attention_neighbourhood: Number of positions that each position sees in
            restricted self-attention (r), odd; 0 means all.
        attention_bias: Whether the projections of attention have biases; not of
            branched attention.
        ffn_layer: "dense_relu_dense" (the paper) or "parameter_attention".
        ffn_activation: Function between the two matrices of the feed-forward network:
            "relu" (the paper), "swish" or "gelu". Branches have "relu".
        branched_attention: "none", or the form of the feed-forward network inside
            branched attention, "split" or "shared"; see `BranchedAttention`.
        branched_in_decoder: Attention of a decoder layer that is branched, "memory" or
            "self". The other one is multi-head attention.
        branch_residual: Residual connections and normalizations of the branches:
            "around" or "inside" (see `BranchedAttention`), or "per_branch" or "shared"
            (see `layers.weighted`).
        branch_gain: "none"; "unit", which multiplies kappa and alpha by M; or
            "initial", which multiplies the initial W^O and W_2 by M.

    Raises:
        ValueError: If an option has an unknown value, or if two options contradict
            each other.
    """

    num_heads: int
    filter_size: int
    hidden_size: int | None = None
    norm: Norm = "post"
    norm_epsilon: float = 1e-6
    layer_prepostprocess_dropout: float = 0.0
    self_attention_type: str = "dot_product"
    attention_neighbourhood: int = 0
    attention_bias: bool = False
    ffn_layer: FeedForwardKind = "dense_relu_dense"
    ffn_activation: Activation = "relu"
    branched_attention: Branched = "none"
    branched_in_decoder: BranchedInDecoder = "memory"
    branch_residual: BranchResidual = "around"
    branch_gain: BranchGain = "none"

    def __post_init__(self) -> None:
        for name, choice in (
            ("norm", Norm),
            ("ffn_layer", FeedForwardKind),
            ("ffn_activation", Activation),
            ("branched_attention", Branched),
            ("branched_in_decoder", BranchedInDecoder),
            ("branch_residual", BranchResidual),
            ("branch_gain", BranchGain),
        ):
            check_choice(name, getattr(self, name), choice)
        for problem in layer_contradictions(self):
            raise ValueError(problem)

    @property
    def network_in_attention(self) -> bool:
        """Whether branched attention contains the feed-forward network."""
        return network_in_attention(self.branched_attention, self.branch_residual)

    @property
    def network_role(self) -> AttentionRole:
        """The attention of a decoder layer after which a separate network comes.

        A network with one input per branch must come after the branched attention.
        Any other network keeps its place in the Transformer.
        """
        has_branches = self.branched_attention != "none"
        per_branch = has_branches and self.branch_residual == "per_branch"
        if per_branch and self.branched_in_decoder == "self":
            return AttentionRole.DECODER_SELF
        return AttentionRole.MEMORY

    def is_branched(self, role: AttentionRole) -> bool:
        """Return whether the attention of this role is branched attention."""
        if self.branched_attention == "none":
            return False
        in_memory = self.branched_in_decoder == "memory"
        in_decoder = AttentionRole.MEMORY if in_memory else AttentionRole.DECODER_SELF
        return role in (AttentionRole.ENCODER_SELF, in_decoder)


def build_dense(layer: keras.layers.Dense, width: int, units: int) -> None:
    """Build a layer whose widths were unknown when it was made."""
    layer.units = units
    layer.build((None, None, width))


@functools.cache
def keyword_arguments(layer_class: type) -> dict[str, inspect.Parameter]:
    """Return the keyword-only arguments of a layer and of its bases, by name."""
    found: dict[str, inspect.Parameter] = {}
    for each in layer_class.__mro__:
        if each is keras.layers.Layer:
            break
        if "__init__" in vars(each):
            for name, parameter in inspect.signature(each.__init__).parameters.items():
                if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                    found.setdefault(name, parameter)
    return found


class Sublayer(keras.layers.Layer):
    """Layer whose keyword arguments are both options and configuration.

    It keeps each argument in the attribute of the same name, from which `get_config`
    reads it. In an encoder or decoder layer, an argument has the value of the option of
    its name.

    Args:
        hidden_size: Width of the inputs and of the output (d_model). By default, the
            width of the first input that the layer sees.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, *, hidden_size: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.hidden_size = hidden_size

    @classmethod
    def from_options(cls, options: LayerStructure, **kwargs: Any) -> Self:
        """Make the sublayer of an encoder or decoder layer.

        Args:
            options: Options of the encoder or decoder layer.
            **kwargs: Arguments that are not options, or that override them.
        """
        shared = {
            name: getattr(options, name)
            for name in keyword_arguments(cls)
            if hasattr(options, name)
        }
        return cls(**shared | kwargs)

    def width(self, input_shape: Any) -> int:
        """Return `hidden_size`, which the shape of the first input decides if None."""
        if self.hidden_size is None:
            if input_shape is None:
                raise ValueError(
                    "`build` needs the shape of the input, or the layer a "
                    "`hidden_size`. Received: input_shape=None, hidden_size=None"
                )
            self.hidden_size = int(input_shape[-1])
        return self.hidden_size

    def get_config(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in keyword_arguments(type(self))}
        return super().get_config() | own
