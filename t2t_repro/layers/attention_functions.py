"""Functions of tensors that the attention layers share (paper section 3.2.1)."""

from __future__ import annotations

from keras import KerasTensor, ops

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
