"""Boolean attention masks. True always means "may attend".

A mask has the shape `[batch or 1, 1, query_length, key_length]`, broadcastable
to the attention logits `[batch, num_heads, query_length, key_length]`. No layer has an
argument called `mask`, because Keras would pass its own mask of time steps to it.
"""

from __future__ import annotations

from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID


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
