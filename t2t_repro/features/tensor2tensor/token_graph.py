"""tensor2tensor's tokens and bytes as TensorFlow operations."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from t2t_repro.text.in_graph import InGraphSymbols, InGraphTokenizer
from t2t_repro.text.lines import PYTHON_SPACES


class InGraphTokens(InGraphSymbols):
    """The operations of a `TokenTokenizer`; see `InGraphSymbols`."""

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        spaced = tf.strings.regex_replace(texts, PYTHON_SPACES, " ")
        return super()._encode_valid(spaced)


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
