"""Long sources as pieces, and the kinds of their words, inside a graph."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from t2t_repro.constants import NO_WORD
from t2t_repro.text.in_graph import InGraphTokenizer


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


def kinds_of_pieces(
    kinds: tf.RaggedTensor,
    pieces: Pieces,
    tokenizer: InGraphTokenizer,
    truncated: tf.Tensor,
) -> tf.RaggedTensor:
    """Give each piece the words that begin in it; see `decoding.pieces.with_words`.

    Args:
        kinds: Kinds of the words of the sentences, int32 `[batch, None]`.
        pieces: Pieces of the sentences.
        tokenizer: Tokenizer of the sentences.
        truncated: Whether the end of each sentence is in no piece, bool `[batch]`. Then
            its last piece does not get the words that are left.

    Returns:
        Ragged int32 `[pieces, None]`.
    """
    begins = pieces.ids.with_flat_values(
        tf.cast(tokenizer.begins_word(pieces.ids.flat_values), tf.int32)
    )
    counts = tf.reduce_sum(begins, axis=1)
    # A sentence begins with a word, even without a space before it.
    first_token = tf.gather(begins.flat_values, begins.row_starts())
    counts += tf.where(pieces.is_first, 1 - first_token, 0)
    ends = tf.cumsum(counts)
    before = tf.boolean_mask(ends - counts, pieces.is_first)
    number = tf.cumsum(tf.cast(pieces.is_first, tf.int32)) - 1
    ends -= tf.gather(before, number)
    total = tf.cast(tf.gather(kinds.row_lengths(), pieces.sentences), tf.int32)
    is_last = tf.concat([pieces.is_first[1:], tf.ones_like(pieces.is_first[:1])], 0)
    has_rest = tf.logical_and(
        is_last, tf.logical_not(tf.gather(truncated, pieces.sentences))
    )
    first = tf.minimum(ends - counts, total)
    end = tf.where(has_rest, total, tf.minimum(ends, total))
    offset = tf.cast(tf.gather(kinds.row_starts(), pieces.sentences), tf.int32)
    places = tf.ragged.range(offset + first, offset + end)
    return places.with_flat_values(tf.gather(kinds.flat_values, places.flat_values))


def padded_kinds(kinds: tf.RaggedTensor) -> tf.Tensor:
    """Return int32 `[rows, n]`, whose last column has only padding."""
    padded = kinds.to_tensor(NO_WORD)
    return tf.pad(padded, [[0, 0], [0, 1]], constant_values=NO_WORD)
