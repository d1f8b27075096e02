"""Multi-head attention (paper section 3.2.2).

tensor2tensor: `common_attention.py: dot_product_attention, multihead_attention`.
"""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import Compatibility, check_choice
from t2t_repro.layers.attention_capture import keep_weights
from t2t_repro.layers.attention_functions import (
    dot_product,
    masked_softmax,
    merge_heads,
    scaled_dot_product,
    split_heads,
)
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.masks import causal_mask, combine_masks, neighbourhood_mask
from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.projections import check_heads, projection
from t2t_repro.registry import register_attention


@register_attention("dot_product")
@register_attention("restricted_masked")
@keras.saving.register_keras_serializable(package="t2t_repro")
class MultiheadAttention(keras.layers.Layer):
    """Multi-head attention with separate key and value depths (section 3.2.2).

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O with
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). One matrix holds the projections of
    all heads. No projection has a bias, as in the paper's equations. The paper does not
    say how the matrices are initialized; here each is Glorot uniform. Differs from
    tensor2tensor before 2017-11, where queries, keys and values were one matrix and
    therefore had a smaller limit.

    A subclass can override `logits`, `visible_history` or `merge`. Then `call`, on
    whole sequences, and `attend`, on cached keys and values, both follow.

    Args:
        hidden_size: Width of the inputs and of the output (d_model).
        num_heads: Number of heads (h).
        key_channels: Total width of queries and keys over all heads (h d_k).
        value_channels: Total width of values over all heads (h d_v).
        compatibility: Function of queries and keys: "scaled_dot_product", equation (1);
            "dot_product", the same without 1 / sqrt(d_k); or "additive", Bahdanau et
            al.'s v^T tanh(q + k) with a vector v per head, which section 3.2.1
            compares with the other two.
        causal: Whether a position cannot see later positions.
        neighbourhood: Number of positions that each position sees in self-attention (r
            of section 4), odd, with the position itself in the middle; 0 means all.
        dropout_rate: Dropout on the attention weights (not in the paper's base;
            tensor2tensor `attention_dropout`).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query_input: `[batch, query_length, hidden_size]`.
        memory_input: `[batch, key_length, hidden_size]`; the same tensor as
            `query_input` for self-attention.
        attention_mask: Boolean, True = may attend, broadcastable to
            `[batch, num_heads, query_length, key_length]`.
        training: Whether dropout is active.

    Returns:
        `[batch, query_length, hidden_size]`.

    Raises:
        ValueError: If `num_heads` does not divide the channels, `compatibility` is
            unknown, or `neighbourhood` is even.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        compatibility: Compatibility = "scaled_dot_product",
        causal: bool = False,
        neighbourhood: int = 0,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_heads(num_heads, key_channels, value_channels)
        check_choice("compatibility", compatibility, Compatibility)
        if neighbourhood and (neighbourhood < 0 or neighbourhood % 2 == 0):
            raise ValueError(
                "`neighbourhood` must be 0, or odd and positive. "
                f"Received: neighbourhood={neighbourhood}"
            )
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.key_channels = key_channels
        self.value_channels = value_channels
        self.compatibility = compatibility
        self.causal = causal
        self.neighbourhood = neighbourhood
        self.dropout_rate = dropout_rate
        self.query_projection = projection("query", key_channels, self.dtype_policy)
        self.key_projection = projection("key", key_channels, self.dtype_policy)
        self.value_projection = projection("value", value_channels, self.dtype_policy)
        self.output_projection = projection("output", hidden_size, self.dtype_policy)
        self.weights_dropout = Dropout(
            dropout_rate, name="weights_dropout", dtype=self.dtype_policy
        )

    @classmethod
    def from_options(
        cls, options: LayerOptions, role: AttentionRole, **kwargs: Any
    ) -> Self:
        """Make the attention sublayer of an encoder or decoder layer.

        Args:
            options: Options of the encoder or decoder layer.
            role: Place of the sublayer.
            **kwargs: Other arguments of the class.
        """
        return cls(
            hidden_size=options.hidden_size,
            num_heads=options.num_heads,
            key_channels=options.key_channels,
            value_channels=options.value_channels,
            compatibility=options.compatibility,
            causal=role.is_causal,
            neighbourhood=options.neighbourhood if role.is_self_attention else 0,
            dropout_rate=options.attention_dropout,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        for layer in (
            self.query_projection,
            self.key_projection,
            self.value_projection,
        ):
            layer.build((None, None, self.hidden_size))
        self.output_projection.build((None, None, self.value_channels))
        if self.compatibility == "additive":
            self.compatibility_vector = self.add_weight(
                name="compatibility_vector",
                shape=(self.num_heads, self.key_channels // self.num_heads),
                initializer="glorot_uniform",
            )

    def call(
        self,
        query_input: KerasTensor,
        memory_input: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        length = ops.shape(query_input)[1]
        if self.causal:
            attention_mask = combine_masks(attention_mask, causal_mask(length))
        if self.neighbourhood:
            near = neighbourhood_mask(length, self.neighbourhood)
            attention_mask = combine_masks(attention_mask, near)
        key, value = self.project_memory(memory_input)
        return self.attend(query_input, key, value, attention_mask, training=training)

    def project_query(self, query_input: KerasTensor) -> KerasTensor:
        """Project queries to `[batch, num_heads, query_length, key_depth]`."""
        return split_heads(self.query_projection(query_input), self.num_heads)

    def project_memory(
        self, memory_input: KerasTensor
    ) -> tuple[KerasTensor, KerasTensor]:
        """Project the memory to keys and values, once for any number of queries.

        Args:
            memory_input: `[batch, key_length, hidden_size]`.

        Returns:
            Keys `[batch, num_heads, key_length, key_depth]` and values
            `[batch, num_heads, key_length, value_depth]`.
        """
        return (
            split_heads(self.key_projection(memory_input), self.num_heads),
            split_heads(self.value_projection(memory_input), self.num_heads),
        )

    def logits(self, query: KerasTensor, key: KerasTensor) -> KerasTensor:
        """Return the compatibility of every query with every key.

        Args:
            query: `[batch, num_heads, ..., query_length, key_depth]`.
            key: `[batch, num_heads, ..., key_length, key_depth]`.

        Returns:
            `[batch, num_heads, ..., query_length, key_length]`.
        """
        if self.compatibility == "dot_product":
            return dot_product(query, key)
        if self.compatibility == "scaled_dot_product":
            return scaled_dot_product(query, key)
        hidden = ops.tanh(query[..., :, None, :] + key[..., None, :, :])
        vector = ops.convert_to_tensor(self.compatibility_vector, self.compute_dtype)
        return ops.einsum("BN...H,NH->BN...", hidden, vector)

    def weights_of(
        self,
        query_input: KerasTensor,
        key: KerasTensor,
        attention_mask: KerasTensor | None = None,
    ) -> KerasTensor:
        """Return the attention weights.

        Args:
            query_input: `[batch, query_length, hidden_size]`.
            key: Keys from `project_memory`.
            attention_mask: See the class.

        Returns:
            float32 `[batch, num_heads, query_length, key_length]`.
        """
        logits = self.logits(self.project_query(query_input), key)
        return masked_softmax(logits, attention_mask)

    def attend(
        self,
        query_input: KerasTensor,
        key: KerasTensor,
        value: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Attend to keys and values that are already projected.

        Args:
            query_input: `[batch, query_length, hidden_size]`.
            key: Keys from `project_memory`.
            value: Values from `project_memory`.
            attention_mask: See the class. It is used as it is: neither `causal` nor
                `neighbourhood` is added.
            training: Whether dropout is active.

        Returns:
            `[batch, query_length, hidden_size]`.
        """
        weights = self.weights_of(query_input, key, attention_mask)
        keep_weights(self, lambda: weights)
        dropped = self.drop_weights(weights, training)
        return self.merge(ops.einsum("BNTS,BNSH->BNTH", dropped, value), training)

    def drop_weights(
        self, weights: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        """Cast attention weights to the compute dtype and apply dropout to them."""
        weights = ops.cast(weights, self.compute_dtype)
        return self.weights_dropout(weights, training=training)

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Concatenate the heads and project them.

        Args:
            heads: `[batch, num_heads, query_length, value_depth]`.
            training: Whether dropout is active; a subclass may apply some here.

        Returns:
            `[batch, query_length, hidden_size]`.
        """
        del training
        return self.output_projection(merge_heads(heads))

    def visible_history(
        self, history: KerasTensor, first_slot: KerasTensor
    ) -> KerasTensor:
        """Return the slots of a decoding cache that a hypothesis may attend to.

        Args:
            history: Boolean `[batch, 1, beam_size, slots]`; see `DecoderLayer.step`.
            first_slot: int32 scalar, the first slot of the position to decode.

        Returns:
            Boolean, of the shape of `history`.
        """
        if not self.neighbourhood:
            return history
        beam_size, slots = history.shape[2], ops.shape(history)[3]
        oldest = first_slot - (self.neighbourhood // 2) * beam_size
        return history & (ops.arange(slots) >= oldest)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "key_channels": self.key_channels,
            "value_channels": self.value_channels,
            "compatibility": self.compatibility,
            "causal": self.causal,
            "neighbourhood": self.neighbourhood,
            "dropout_rate": self.dropout_rate,
        }
