"""Self-attention restricted to a neighbourhood (paper section 4).

"Self-attention could be restricted to considering only a neighborhood of size r in the
input sequence centered around the respective output position." A mask
(`masks.neighbourhood_mask`) does this with all n^2 logits; this module computes blocks,
in O(r n d) time and memory. Differs from tensor2tensor's `local_attention_1d`, whose
windows begin at block boundaries and so are not centered.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import Compatibility
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.attention_capture import keep_weights
from t2t_repro.layers.attention_functions import masked_softmax
from t2t_repro.registry import register_attention


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
