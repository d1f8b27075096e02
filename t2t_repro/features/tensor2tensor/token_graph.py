"""tensor2tensor's tokens and bytes as TensorFlow operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from t2t_repro.text.in_graph import InGraphTokenizer
from t2t_repro.text.lines import PYTHON_SPACES


class InGraphTokens(InGraphTokenizer):
    """The operations of a `TokenTokenizer`.

    Args:
        entries: The token of each id.
        ids: The id of each token.
        unknown_id: Id of all other tokens.
    """

    def __init__(
        self, entries: Sequence[str], ids: Mapping[str, int], unknown_id: int
    ) -> None:
        super().__init__()
        self._entries = tf.constant(list(entries))
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(ids)), tf.constant(list(ids.values()), tf.int32)
            ),
            unknown_id,
        )

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        words = tf.strings.split(tf.strings.regex_replace(texts, PYTHON_SPACES, " "))
        return words.with_flat_values(self._table.lookup(words.flat_values))

    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=" ")


class InGraphBytes(InGraphTokenizer):
    """The operations of a `ByteTokenizer`.

    Args:
        entries: The text that shows each id; those of bytes are the last 256.
        space: Id of the space.
    """

    def __init__(self, entries: Sequence[str], space: int) -> None:
        super().__init__()
        self._entries = tf.constant(list(entries))
        self._first = len(entries) - 256
        self._space = space
        reserved = [name.encode() for name in entries[: self._first]]
        self._bytes = tf.constant([*reserved, *(bytes([b]) for b in range(256))])

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        split = tf.strings.bytes_split(texts)
        values = tf.io.decode_raw(split.flat_values, tf.uint8, fixed_length=1)
        ids = tf.cast(tf.reshape(values, [-1]), tf.int32) + self._first
        return split.with_flat_values(ids)

    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        texts = tf.strings.reduce_join(tf.gather(self._bytes, ids), axis=-1)
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")

    def begins_word(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.equal(ids, self._space)
