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
import functools
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID, Compatibility, check_choice
from t2t_repro.layers.dense import Dense, shape_of
from t2t_repro.layers.options import (
    AttentionRole,
    LayerStructure,
    Sublayer,
    build_dense,
)
from t2t_repro.layers.residual import Dropout


def padding_mask(ids: KerasTensor) -> KerasTensor:
    """Return an attention mask that hides padding from every query.

    The argument `padding_mask` of the layers has another shape, `[batch, key_length]`.

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


def with_padding_mask(
    attention_mask: KerasTensor | None, padding_mask: KerasTensor | None
) -> KerasTensor | None:
    """Return a mask that also hides the padding of `padding_mask`, if given.

    Args:
        attention_mask: `[batch or 1, 1, query_length or 1, key_length]`.
        padding_mask: `[batch, key_length]`, False at padding, of any dtype.
    """
    if padding_mask is None:
        return attention_mask
    visible = ops.cast(padding_mask, "bool")[:, None, None, :]
    return combine_masks(attention_mask, visible)


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


def project_to_heads(projection: Dense, x: KerasTensor, num_heads: int) -> KerasTensor:
    """Project inputs, and split the result into heads.

    Args:
        projection: W^Q, W^K or W^V of all heads.
        x: `[batch, length, hidden_size]`.
        num_heads: Number of heads.

    Returns:
        `[batch, num_heads, length, depth]`.
    """
    batch, length, channels = shape_of(x)
    heads = projection(ops.reshape(x, (-1, channels)))
    depth = projection.units // num_heads
    heads = ops.reshape(heads, (batch, length, num_heads, depth))
    return ops.transpose(heads, (0, 2, 1, 3))


def project_heads(projection: Dense, heads: KerasTensor) -> KerasTensor:
    """Concatenate heads, and project them.

    Args:
        projection: W^O.
        heads: `[batch, num_heads, length, depth]`.

    Returns:
        `[batch, length, hidden_size]`.
    """
    batch, num_heads, length, depth = shape_of(heads)
    rows = ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, num_heads * depth))
    return ops.reshape(projection(rows), (batch, length, projection.units))


CapturedWeights = dict[keras.layers.Layer, KerasTensor]

_captured: ContextVar[CapturedWeights | None] = ContextVar("captured", default=None)


@contextlib.contextmanager
def capture_weights() -> Generator[CapturedWeights]:
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


def projection(name: str, channels: int, dtype: object, *, bias: bool = False) -> Dense:
    """Make W^Q, W^K, W^V or W^O, initially Glorot uniform.

    Args:
        name: Name of the layer.
        channels: Width of the output; 0 if `build_dense` will say it.
        dtype: Dtype or dtype policy.
        bias: Whether the layer also adds a vector, initially zero.
    """
    return Dense(
        max(channels, 1),
        use_bias=bias,
        kernel_initializer="glorot_uniform",
        name=name,
        dtype=dtype,
    )


def check_heads(num_heads: int, **channels: int) -> None:
    """Check that every head gets an equal part of the channels.

    Raises:
        ValueError: If `num_heads` does not divide the channels.
    """
    for name, each in channels.items():
        if each % num_heads:
            raise ValueError(
                f"`num_heads` must divide `{name}`. "
                f"Received: num_heads={num_heads}, {name}={each}"
            )


@keras.saving.register_keras_serializable(package="t2t_repro")
class MultiHeadAttention(Sublayer):
    """Multi-head attention with separate key and value depths (section 3.2.2).

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O with
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). One matrix holds the projections of
    all heads. By default, no projection has a bias, as in the paper's equations. The
    paper does not say how the matrices are initialized; here each is Glorot uniform.
    Differs from tensor2tensor before 2017-11, where queries, keys and values were one
    matrix and therefore had a smaller limit.

    A subclass can override `logits`, `project_query`, `project_memory`, `weights_of`,
    `merge` or `visible_history`. Then `call`, on whole sequences, and `attend`, on
    cached keys and values, both follow. `attend_to_all` is only for whole sequences.

    Args:
        num_heads: Number of heads (h).
        attention_key_channels: Total width of queries and keys over all heads (h d_k);
            0 = `hidden_size`.
        attention_value_channels: Total width of values over all heads (h d_v); 0 =
            `hidden_size`.
        attention_compatibility: Function of queries and keys: "scaled_dot_product",
            equation (1); "dot_product", the same without 1 / sqrt(d_k); or "additive",
            Bahdanau et al.'s v^T tanh(q + k) with a vector v per head, which section
            3.2.1 compares with the other two.
        attention_bias: Whether the four projections have biases, as in Marian.
        causal: Whether a position cannot see later positions.
        attention_neighbourhood: Number of positions that each position sees in
            self-attention (r of section 4), odd, with the position itself in the
            middle; 0 means all.
        attention_dropout: Dropout on the attention weights (not in the paper's base).
        **kwargs: `hidden_size`, by default that of the query, and arguments of
            `keras.layers.Layer`.

    Call arguments:
        query_input: `[batch, query_length, hidden_size]`.
        memory_input: `[batch, key_length, hidden_size]`; the same tensor as
            `query_input` for self-attention.
        attention_mask: Boolean, True = may attend, broadcastable to
            `[batch, num_heads, query_length, key_length]`.
        padding_mask: Boolean `[batch, key_length]`, False at padding; by default, the
            mask that Keras attached to `memory_input`, if there is one.
        training: Whether dropout is active.
        return_attention_scores: Whether to return the weights, too.

    Returns:
        `[batch, query_length, hidden_size]`; if asked for, also the weights before
        dropout, float32 `[batch, num_heads, query_length, key_length]`.

    Raises:
        ValueError: If `num_heads` does not divide the channels,
            `attention_compatibility` is unknown, or `attention_neighbourhood` is even.

    Example:
    ```python
    attention = MultiHeadAttention(num_heads=8, causal=True)
    x = keras.random.normal((2, 10, 512))
    output, scores = attention(x, x, return_attention_scores=True)
    assert output.shape == (2, 10, 512)
    assert scores.shape == (2, 8, 10, 10)
    ```
    """

    def __init__(
        self,
        *,
        num_heads: int,
        attention_key_channels: int = 0,
        attention_value_channels: int = 0,
        attention_compatibility: Compatibility = "scaled_dot_product",
        attention_bias: bool = False,
        causal: bool = False,
        attention_neighbourhood: int = 0,
        attention_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("attention_compatibility", attention_compatibility, Compatibility)
        if attention_neighbourhood and (
            attention_neighbourhood < 0 or attention_neighbourhood % 2 == 0
        ):
            raise ValueError(
                "`attention_neighbourhood` must be 0, or odd and positive. "
                f"Received: attention_neighbourhood={attention_neighbourhood}"
            )
        self.num_heads = num_heads
        self.attention_key_channels = attention_key_channels
        self.attention_value_channels = attention_value_channels
        self.attention_compatibility = attention_compatibility
        self.attention_bias = attention_bias
        self.causal = causal
        self.attention_neighbourhood = attention_neighbourhood
        self.attention_dropout = attention_dropout
        self._check_channels(self.hidden_size or 0)
        policy = self.dtype_policy
        key, value = self.attention_key_channels, self.attention_value_channels
        make = functools.partial(projection, dtype=policy, bias=attention_bias)
        self.query_projection = make("query", key)
        self.key_projection = make("key", key)
        self.value_projection = make("value", value)
        self.output_projection = make("output", self.hidden_size or 0)
        self.weights_dropout = Dropout(
            attention_dropout, name="weights_dropout", dtype=policy
        )

    @classmethod
    def from_options(
        cls, options: LayerStructure, role: AttentionRole, **kwargs: Any
    ) -> Self:
        """Make the attention sublayer of an encoder or decoder layer.

        Args:
            options: Options of the encoder or decoder layer.
            role: Place of the sublayer.
            **kwargs: Other arguments of the class.
        """
        if not role.is_self_attention:
            kwargs = {"attention_neighbourhood": 0} | kwargs
        return super().from_options(options, causal=role.is_causal, **kwargs)

    def _check_channels(self, width: int) -> None:
        """Replace channels of 0 by a width, and check that heads divide them."""
        self.attention_key_channels = self.attention_key_channels or width
        self.attention_value_channels = self.attention_value_channels or width
        check_heads(
            self.num_heads,
            attention_key_channels=self.attention_key_channels,
            attention_value_channels=self.attention_value_channels,
        )

    def build(self, input_shape: Any = None) -> None:
        width = self.width(input_shape)
        self._check_channels(width)
        key, value = self.attention_key_channels, self.attention_value_channels
        build_dense(self.query_projection, width, key)
        build_dense(self.key_projection, width, key)
        build_dense(self.value_projection, width, value)
        build_dense(self.output_projection, value, width)
        if self.attention_compatibility == "additive":
            self.compatibility_vector = self.add_weight(
                name="compatibility_vector",
                shape=(self.num_heads, key // self.num_heads),
                initializer="glorot_uniform",
            )

    def call(
        self,
        query_input: KerasTensor,
        memory_input: KerasTensor,
        attention_mask: KerasTensor | None = None,
        padding_mask: KerasTensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> KerasTensor | tuple[KerasTensor, KerasTensor]:
        if padding_mask is None:
            padding_mask = getattr(memory_input, "_keras_mask", None)
        mask = with_padding_mask(attention_mask, padding_mask)
        if not return_attention_scores:
            return self.attend_to_all(query_input, memory_input, mask, training)
        with capture_weights() as captured:
            output = self.attend_to_all(query_input, memory_input, mask, training)
        scores = captured[self]
        keep_weights(self, lambda: scores)
        return output, scores

    def attend_to_all(
        self,
        query_input: KerasTensor,
        memory_input: KerasTensor,
        attention_mask: KerasTensor | None,
        training: bool | None,
    ) -> KerasTensor:
        """Attend to whole sequences, with the masks of the layer's own arguments."""
        length = ops.shape(query_input)[1]
        if self.causal:
            attention_mask = combine_masks(attention_mask, causal_mask(length))
        if self.attention_neighbourhood:
            near = neighbourhood_mask(length, self.attention_neighbourhood)
            attention_mask = combine_masks(attention_mask, near)
        key, value = self.project_memory(memory_input)
        return self.attend(query_input, key, value, attention_mask, training=training)

    def project_query(self, query_input: KerasTensor) -> KerasTensor:
        """Project queries to `[batch, num_heads, query_length, key_depth]`."""
        return project_to_heads(self.query_projection, query_input, self.num_heads)

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
            project_to_heads(self.key_projection, memory_input, self.num_heads),
            project_to_heads(self.value_projection, memory_input, self.num_heads),
        )

    def logits(self, query: KerasTensor, key: KerasTensor) -> KerasTensor:
        """Return the compatibility of every query with every key.

        Args:
            query: `[batch, num_heads, ..., query_length, key_depth]`.
            key: `[batch, num_heads, ..., key_length, key_depth]`.

        Returns:
            `[batch, num_heads, ..., query_length, key_length]`.
        """
        if self.attention_compatibility == "dot_product":
            return dot_product(query, key)
        if self.attention_compatibility == "scaled_dot_product":
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
            attention_mask: See the class. Neither `causal` nor
                `attention_neighbourhood` is added to it.
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
        return project_heads(self.output_projection, heads)

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
        if not self.attention_neighbourhood:
            return history
        beam_size, slots = history.shape[2], ops.shape(history)[3]
        oldest = first_slot - (self.attention_neighbourhood // 2) * beam_size
        return history & (ops.arange(slots) >= oldest)


@keras.saving.register_keras_serializable(package="t2t_repro")
class BlockedAttention(MultiHeadAttention):
    """Self-attention to a neighbourhood, computed block by block (paper section 4).

    "Self-attention could be restricted to considering only a neighborhood of size r in
    the input sequence centered around the respective output position." A mask does this
    with all n^2 logits; this layer computes blocks, in O(r n d) time and memory. It
    returns the same numbers as `MultiHeadAttention` with the same
    `attention_neighbourhood`, except for queries whose whole neighbourhood is padding.
    Differs from tensor2tensor's `local_attention_1d`, whose windows begin at block
    boundaries and so are not centered.

    Args:
        attention_neighbourhood: Number of positions that each position sees (r), odd.
        **kwargs: Other arguments of `MultiHeadAttention`.

    The call arguments are those of `MultiHeadAttention`, but `attention_mask` is the
    same for all queries, `[batch, 1, 1, length]`.

    Returns:
        `[batch, length, hidden_size]`; see `MultiHeadAttention`.

    Raises:
        ValueError: If `attention_neighbourhood` is not positive, or as for
            `MultiHeadAttention`.

    Example:
    ```python
    attention = BlockedAttention(num_heads=8, attention_neighbourhood=31)
    x = keras.random.normal((2, 100, 64))
    assert attention(x, x).shape == (2, 100, 64)
    ```
    """

    def __init__(self, *, attention_neighbourhood: int, **kwargs: Any) -> None:
        super().__init__(attention_neighbourhood=attention_neighbourhood, **kwargs)
        if not attention_neighbourhood:
            raise ValueError("`attention_neighbourhood` must be positive. Received: 0")

    def attend_to_all(
        self,
        query_input: KerasTensor,
        memory_input: KerasTensor,
        attention_mask: KerasTensor | None,
        training: bool | None,
    ) -> KerasTensor:
        if attention_mask is not None and attention_mask.shape[2] != 1:
            raise ValueError(
                "`attention_mask` must be the same for all queries, "
                f"[batch, 1, 1, length]. Received shape: {attention_mask.shape}"
            )
        key, value = self.project_memory(memory_input)
        query = self.project_query(query_input)
        length = ops.shape(query)[2]
        reach = self.attention_neighbourhood // 2
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
