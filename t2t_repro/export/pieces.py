"""Long sources as pieces that a model can read, inside a graph."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Pieces(NamedTuple):
    """Pieces of sentences.

    Attributes:
        ids: Ids of the pieces, without EOS, int32 `[pieces, None]`.
        sentences: Number of the sentence of each piece, `[pieces]`.
        is_first: Whether a piece is the first one of its sentence, bool `[pieces]`.
    """

    ids: tf.RaggedTensor
    sentences: tf.Tensor
    is_first: tf.Tensor


def truncate(ids: tf.RaggedTensor, longest: int) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Cut rows that are too long.

    Args:
        ids: Ids, int32 `[batch, None]`.
        longest: Largest number of ids per row.

    Returns:
        The first `longest` ids of each row, int32 `[batch, None]`, and whether there
        were more, bool `[batch]`.
    """
    return ids[:, :longest], ids.row_lengths() > longest


def cut_into_pieces(ids: tf.RaggedTensor, longest: int) -> Pieces:
    """Cut sentences into pieces that fit the model.

    Args:
        ids: Ids of whole sentences, int32 `[batch, None]`.
        longest: Largest number of tokens per piece.

    Returns:
        The pieces, in order. A sentence without tokens has none.
    """
    sentence = ids.value_rowids()
    place = tf.range(tf.size(sentence, sentence.dtype))
    place -= tf.gather(ids.row_starts(), sentence)
    begins = tf.equal(place % longest, 0)
    piece = tf.cumsum(tf.cast(begins, sentence.dtype)) - 1
    sentences = tf.boolean_mask(sentence, begins)
    pieces = tf.RaggedTensor.from_value_rowids(
        ids.flat_values, piece, nrows=tf.size(sentences, piece.dtype)
    )
    return Pieces(pieces, sentences, tf.equal(tf.boolean_mask(place, begins), 0))
