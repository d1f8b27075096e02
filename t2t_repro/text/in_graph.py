"""The tokenizers as TensorFlow operations, for `tf.data` and SavedModels."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

import tensorflow as tf

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.text.lines import BLANK_TEXT


class InGraphTokenizer(tf.Module, abc.ABC):
    """A tokenizer inside the graph; its ids and texts are the same as in Python.

    Attributes:
        _entries: The vocabulary entry of each id, unless `pieces` finds it elsewhere.
    """

    _entries: tf.Tensor

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of texts, without an end of sentence; a blank text has none.

        Args:
            texts: UTF-8 strings `[batch]`. Bytes that are not UTF-8 are read as U+FFFD,
                as by Python's `bytes.decode(errors="replace")`.

        Returns:
            Ids, ragged int32 `[batch, None]`.
        """
        # SentencePiece's operation replaces more bytes per error than Python does.
        valid = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        blank = tf.strings.regex_full_match(valid, BLANK_TEXT)
        return self._encode_valid(tf.where(blank, "", valid))

    @abc.abstractmethod
    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of texts in valid UTF-8; see `encode`."""

    @abc.abstractmethod
    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Return the texts, string `[batch]`, of ids, ragged int32 `[batch, None]`."""

    def pieces(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the vocabulary entry of each id, string of the shape of `ids`."""
        return tf.gather(self._entries, ids)

    def begins_word(self, ids: tf.Tensor) -> tf.Tensor:
        """Return whether each id begins a word; the first of a text always does.

        By default, every id is a word.

        Args:
            ids: Ids `[n]`.

        Returns:
            Boolean `[n]`.
        """
        return tf.ones_like(ids, tf.bool)

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts of ids up to the first end of sentence, without padding.

        Args:
            ids: Ids `[batch, length]`.

        Returns:
            Texts, string `[batch]`.
        """
        ids = tf.cast(ids, tf.int32)
        ended = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1)
        is_text = tf.logical_and(tf.equal(ended, 0), tf.not_equal(ids, PAD_ID))
        return self._decode_ragged(tf.ragged.boolean_mask(ids, is_text))


class InGraphSentencePiece(InGraphTokenizer):
    """A SentencePiece model in tensorflow-text.

    Args:
        model: The content of the model file.
    """

    def __init__(self, model: bytes) -> None:
        import tensorflow_text  # a translator in Python does not need it

        super().__init__()
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(
            model=model, out_type=tf.int32
        )

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer.tokenize(texts)

    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return self._tokenizer.detokenize(ids)

    def begins_word(self, ids: tf.Tensor) -> tf.Tensor:
        # SentencePiece writes the space before a word as U+2581.
        first = tf.strings.substr(self.pieces(ids), 0, 1, unit="UTF8_CHAR")
        return tf.equal(first, "\u2581")

    def pieces(self, ids: tf.Tensor) -> tf.Tensor:
        flat = self._tokenizer.id_to_string(tf.reshape(tf.cast(ids, tf.int32), [-1]))
        return tf.reshape(flat, tf.shape(ids))


class InGraphSymbols(InGraphTokenizer):
    """A vocabulary of symbols with white space between them.

    Args:
        entries: The symbol of each id.
        ids: The id of each symbol that a text may have.
        unknown_id: Id of all other symbols.
    """

    def __init__(
        self, entries: Sequence[str], ids: Mapping[str, int], unknown_id: int
    ) -> None:
        super().__init__()
        self._entries = tf.constant(list(entries))
        self._table = lookup_table(ids, unknown_id)

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        words = tf.strings.split(texts)
        return words.with_flat_values(self._table.lookup(words.flat_values))

    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=" ")


def lookup_table(
    values: Mapping[str, int], default: int, dtype: tf.DType = tf.int32
) -> tf.lookup.StaticHashTable:
    """Return a table from texts to numbers.

    Args:
        values: The number of each text.
        default: Number of all other texts.
        dtype: Type of the numbers.
    """
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(values), tf.string),
            tf.constant(list(values.values()), dtype),
        ),
        default,
    )
