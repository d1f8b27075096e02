"""Multi-head attention (paper section 3.2): masks, weights, and the layers.

A mask is boolean, and True always means "may attend". It has the shape
`[batch or 1, 1, query_length, key_length]`, broadcastable to the attention logits
`[batch, num_heads, query_length, key_length]`. No layer has an argument called `mask`,
because Keras would pass its own mask of time steps to it.

Every attention layer passes its weights to `keep_weights`. Nothing happens there
unless the call runs inside `capture_weights`::

    with capture_weights() as captured:
        model(features, training=False)
    weights = captured[model.encoder.layers[0].self_attention]

Inside a traced function, both belong to the function: it opens `capture_weights`, runs
the model, and returns the weights as outputs. A function that was traced outside a
capture contains none of this, so training and decoding pay nothing. Differs from
tensor2tensor (`visualization/visualization.py`), which finds the tensors by hard-coded
names of the graph and misses every attention that is named otherwise.

tensor2tensor: `common_attention.py: dot_product_attention, multihead_attention`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID, Compatibility, check_choice
from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.residual import Dropout
from t2t_repro.registry import register_attention


def padding_mask(ids: KerasTensor) -> KerasTensor:
    """Mask padding for every query.

    Args:
        ids: Token ids, int32 `[batch, key_length]`.

    Returns:
        Boolean mask `[batch, 1, 1, key_length]`.
    """
    return ops.not_equal(ids, PAD_ID)[:, None, None, :]


def segment_mask(query_segments: KerasTensor, key_segments: KerasTensor) -> KerasTensor:
    """Mask the tokens of other sentence pairs in packed rows.

    tensor2tensor: `common_attention.py: attention_bias_same_segment`.

    Args:
        query_segments: Number of the pair that each query belongs to, 0 for padding,
            int32 `[batch, query_length]`.
        key_segments: The same for the keys, int32 `[batch, key_length]`.

    Returns:
        Boolean mask `[batch, 1, query_length, key_length]`.
    """
    same = ops.equal(query_segments[:, :, None], key_segments[:, None, :])
    return same[:, None, :, :]


def causal_mask(length: int | KerasTensor) -> KerasTensor:
    """Mask the positions after each position (paper section 3.2.3).

    Args:
        length: Number of positions.

    Returns:
        Boolean mask `[1, 1, length, length]`.
    """
    positions = ops.arange(length)
    return (positions[:, None] >= positions[None, :])[None, None, :, :]


def neighbourhood_mask(length: int | KerasTensor, neighbourhood: int) -> KerasTensor:
    """Mask the positions outside the neighbourhood of each one (paper section 4).

    Args:
        length: Number of positions.
        neighbourhood: Number of positions that each position sees (r), odd, with
            the position itself in the middle.

    Returns:
        Boolean mask `[1, 1, length, length]`.
    """
    positions = ops.arange(length)
    distances = ops.abs(positions[:, None] - positions[None, :])
    return (distances <= neighbourhood // 2)[None, None, :, :]


def combine_masks(first: KerasTensor | None, second: KerasTensor) -> KerasTensor:
    """Return the logical and of two masks; None allows everything."""
    return second if first is None else ops.logical_and(first, second)


# Large enough that a masked weight is exactly zero after a float32 softmax, small
# enough that a row with everything masked stays finite (tensor2tensor uses the same).
MASKED_LOGIT = -1e9


def dot_product(query: KerasTensor, key: KerasTensor) -> KerasTensor:
    """Return Q K^T, the compatibility of every query with every key.

    Args:
        query: Queries, `[..., query_length, key_depth]`.
        key: Keys, `[..., key_length, key_depth]`.

    Returns:
        Logits, `[..., query_length, key_length]`.
    """
    return ops.einsum("...TH,...SH->...TS", query, key)


def scaled_dot_product(query: KerasTensor, key: KerasTensor) -> KerasTensor:
    """Return Q K^T / sqrt(d_k) of equation (1); shapes as in `dot_product`."""
    return dot_product(query * float(query.shape[-1]) ** -0.5, key)


def masked_softmax(logits: KerasTensor, mask: KerasTensor | None = None) -> KerasTensor:
    """Turn logits into the weights of equation (1), in float32 for every input dtype.

    Args:
        logits: `[batch, num_heads, ..., key_length]`.
        mask: Boolean, True = may attend, broadcastable to the logits.

    Returns:
        Weights, float32, of the shape of the logits. A query without a key to attend
        to gets equal weights.
    """
    logits = ops.cast(logits, "float32")
    if mask is not None:
        logits = ops.where(mask, logits, MASKED_LOGIT)
    return ops.softmax(logits, axis=-1)


def split_heads(x: KerasTensor, num_heads: int) -> KerasTensor:
    """Turn `[batch, length, channels]` into `[batch, num_heads, length, depth]`."""
    batch, length = ops.shape(x)[:2]
    x = ops.reshape(x, (batch, length, num_heads, x.shape[-1] // num_heads))
    return ops.transpose(x, (0, 2, 1, 3))


def merge_heads(heads: KerasTensor) -> KerasTensor:
    """Undo `split_heads`."""
    batch, num_heads, length, depth = ops.shape(heads)
    heads = ops.transpose(heads, (0, 2, 1, 3))
    return ops.reshape(heads, (batch, length, num_heads * depth))


CapturedWeights = dict[keras.layers.Layer, KerasTensor]

_captured: ContextVar[CapturedWeights | None] = ContextVar("captured", default=None)


@contextlib.contextmanager
def capture_weights() -> Iterator[CapturedWeights]:
    """Collect the attention weights of all layers that run inside the block.

    Yields:
        Dict from attention layer to its weights before dropout, float32
        `[batch, num_heads, query_length, key_length]`. It fills while the layers run; a
        layer that runs twice leaves its last weights.
    """
    captured: CapturedWeights = {}
    token = _captured.set(captured)
    try:
        yield captured
    finally:
        _captured.reset(token)


def keep_weights(layer: keras.layers.Layer, weights: Callable[[], KerasTensor]) -> None:
    """Keep the weights of an attention layer if a capture is active.

    Args:
        layer: The attention layer.
        weights: Function that returns its weights, float32
            `[batch, num_heads, query_length, key_length]`. It is called only if a
            capture is active, so it may compute a form that the layer does not need.
    """
    captured = _captured.get()
    if captured is not None:
        captured[layer] = weights()


def projection(name: str, channels: int, dtype: object) -> keras.layers.Dense:
    """Make W^Q, W^K, W^V or W^O: no bias, initially Glorot uniform."""
    return keras.layers.Dense(
        channels,
        use_bias=False,
        kernel_initializer="glorot_uniform",
        name=name,
        dtype=dtype,
    )


def check_heads(num_heads: int, key_channels: int, value_channels: int) -> None:
    """Check that every head gets an equal part of the channels.

    Raises:
        ValueError: If `num_heads` does not divide the channels.
    """
    for name, channels in [("key", key_channels), ("value", value_channels)]:
        if channels % num_heads:
            raise ValueError(
                f"`num_heads` must divide `{name}_channels`. "
                f"Received: num_heads={num_heads}, {name}_channels={channels}"
            )


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


@register_attention("restricted")
@keras.saving.register_keras_serializable(package="t2t_repro")
class BlockedAttention(MultiheadAttention):
    """Multi-head self-attention to a neighbourhood, computed block by block.

    It returns the same numbers as `MultiheadAttention` with the same `neighbourhood`,
    except for queries whose whole neighbourhood is padding.

    Args:
        hidden_size: Width of the inputs and of the output (d_model).
        num_heads: Number of heads (h).
        key_channels: Total width of queries and keys over all heads (h d_k).
        value_channels: Total width of values over all heads (h d_v).
        neighbourhood: Number of positions that each position sees (r), odd.
        compatibility: See `MultiheadAttention`.
        causal: Whether a position cannot see later positions.
        dropout_rate: Dropout on the attention weights.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query_input: `[batch, length, hidden_size]`.
        memory_input: The same tensor.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1, length]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Raises:
        ValueError: If `neighbourhood` is not positive, or as for `MultiheadAttention`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        neighbourhood: int,
        compatibility: Compatibility = "scaled_dot_product",
        causal: bool = False,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size=hidden_size,
            num_heads=num_heads,
            key_channels=key_channels,
            value_channels=value_channels,
            compatibility=compatibility,
            causal=causal,
            neighbourhood=neighbourhood,
            dropout_rate=dropout_rate,
            **kwargs,
        )
        if not neighbourhood:
            raise ValueError("`neighbourhood` must be positive. Received: 0")

    def call(
        self,
        query_input: KerasTensor,
        memory_input: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        if attention_mask is not None and attention_mask.shape[2] != 1:
            raise ValueError(
                "`attention_mask` must be the same for all queries, "
                f"[batch, 1, 1, length]. Received shape: {attention_mask.shape}"
            )
        key, value = self.project_memory(memory_input)
        query = self.project_query(query_input)
        length = ops.shape(query)[2]
        reach = self.neighbourhood // 2
        if attention_mask is None:
            attention_mask = ops.ones((1, 1, 1, length), dtype="bool")
        block = max(reach, 1)
        logits = self.logits(_blocks(query, block), _windows(key, block))
        mask = _window_mask(attention_mask[:, :, 0, :], block, reach, self.causal)
        weights = masked_softmax(logits, mask)
        keep_weights(self, lambda: _dense_weights(weights, length))
        dropped = self.drop_weights(weights, training)
        heads = ops.einsum("BNCTS,BNCSH->BNCTH", dropped, _windows(value, block))
        batch, num_heads, blocks, _, depth = ops.shape(heads)
        heads = ops.reshape(heads, (batch, num_heads, blocks * block, depth))
        return self.merge(heads[:, :, :length], training)


def _blocks(x: KerasTensor, block: int) -> KerasTensor:
    """Cut `[B, N, length, H]` into `[B, N, blocks, block, H]`, padded with zeros."""
    batch, heads, length, depth = ops.shape(x)
    blocks = (length + block - 1) // block
    padding = blocks * block - length
    x = ops.pad(x, [[0, 0], [0, 0], [0, padding], [0, 0]])
    return ops.reshape(x, (batch, heads, blocks, block, depth))


def _windows(x: KerasTensor, block: int) -> KerasTensor:
    """Join every block with its two neighbours, `[B, N, blocks, 3 block, H]`."""
    own = _blocks(x, block)
    zeros = ops.zeros_like(own[:, :, :1])
    before = ops.concatenate([zeros, own[:, :, :-1]], axis=2)
    after = ops.concatenate([own[:, :, 1:], zeros], axis=2)
    return ops.concatenate([before, own, after], axis=3)


def _window_mask(
    key_mask: KerasTensor, block: int, reach: int, causal: bool
) -> KerasTensor:
    """Return the keys of a window that a query may attend to.

    Args:
        key_mask: Boolean `[batch, 1, length]`.
        block: Number of positions per block.
        reach: Number of visible positions on each side.
        causal: Whether later positions are hidden.

    Returns:
        Boolean `[batch, 1, blocks, block, 3 block]`.
    """
    offset = ops.arange(3 * block)[None, :] - block - ops.arange(block)[:, None]
    band = ops.abs(offset) <= reach
    if causal:
        band = band & (offset <= 0)
    exists = _windows(ops.cast(key_mask, "int32")[..., None], block)[..., 0]
    return band & ops.cast(exists, "bool")[:, :, :, None, :]


def _dense_weights(weights: KerasTensor, length: int | KerasTensor) -> KerasTensor:
    """Put the weights of windows in their places among all keys.

    Args:
        weights: `[batch, num_heads, blocks, block, 3 block]`.
        length: Number of positions.

    Returns:
        `[batch, num_heads, length, length]`, zero outside the windows.
    """
    batch, heads, blocks, block, window = ops.shape(weights)
    weights = ops.reshape(weights, (batch, heads, blocks * block, window))
    weights = weights[:, :, :length]
    position = ops.arange(length)
    first_key = (position // block - 1) * block
    place = position[None, :] - first_key[:, None]
    in_window = (place >= 0) & (place < window)
    place = ops.broadcast_to(
        ops.clip(place, 0, window - 1), (batch, heads, length, length)
    )
    return ops.where(in_window, ops.take_along_axis(weights, place, axis=-1), 0.0)
