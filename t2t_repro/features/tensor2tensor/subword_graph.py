"""tensor2tensor's subwords as TensorFlow operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf
import tensorflow_text

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.text.in_graph import InGraphTokenizer, lookup_table

# Two characters with a space between or among them, or none at all on one side.
_WORDS_MEET = r"(?s).?|.* .*|[\p{L}\p{N}]{2}"
_NO_WORD = r"[^\p{L}\p{N}]+"
_ESCAPED = r"\\u|\\\\|\\[0-9]+;"
# `regex_split` ends a text at NUL, so it gets this noncharacter in its place.
_NUL = "\uffff"
# Longer tokens would be unknown.
_LONGEST_TOKEN = 2**31 - 1


class InGraphSubwords(InGraphTokenizer):
    """The operations of a `SubwordTokenizer`.

    Args:
        entries: The subword of each id.
        ids: The id of each subword.
        alphabet: Characters that need no number.
        invalid: Character to write for a number that is no character.
    """

    def __init__(
        self,
        entries: Sequence[str],
        ids: dict[str, int],
        alphabet: frozenset[str],
        invalid: int,
    ) -> None:
        super().__init__()
        self._invalid = invalid
        self._entries = tf.constant(list(entries))
        spelt = sorted(_without_nul(alphabet - {"\n"}))
        self._alphabet = lookup_table(dict.fromkeys(spelt, 1), 0)
        safe = dict(zip(_without_nul(ids), ids.values(), strict=True))
        self._words = tensorflow_text.WordpieceTokenizer(
            lookup_table(safe, -1, tf.int64),
            suffix_indicator="",
            max_bytes_per_word=_LONGEST_TOKEN,
            token_out_type=tf.int64,
            unknown_token=None,
        )

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.strings.regex_replace(texts, "\x00", _NUL)
        tokens = tensorflow_text.regex_split(texts, _NO_WORD, _NO_WORD)
        tokens = _without_inner_spaces(tokens)
        escaped = tokens.with_flat_values(self._escape(tokens.flat_values))
        ids = self._words.tokenize(escaped).merge_dims(1, 2)
        return tf.cast(ids, tf.int32)

    def _escape(self, tokens: tf.Tensor) -> tf.Tensor:
        tokens = tf.strings.regex_replace(tokens, r"\\", r"\\\\")
        tokens = tf.strings.regex_replace(tokens, "_", r"\\u")
        characters = tf.strings.unicode_split(tokens, "UTF-8")
        flat = characters.flat_values
        codes = tf.strings.unicode_decode(flat, "UTF-8").flat_values
        codes = tf.where(tf.equal(codes, ord(_NUL)), 0, codes)
        numbers = tf.strings.join(["\\", tf.strings.as_string(codes), ";"])
        is_spelt = tf.equal(self._alphabet.lookup(flat), 1)
        characters = characters.with_flat_values(tf.where(is_spelt, flat, numbers))
        return tf.strings.reduce_join(characters, axis=-1) + "_"

    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        texts = tf.strings.reduce_join(self.pieces(ids), axis=-1)
        tokens = tf.strings.split(texts, "_")
        tokens = tokens.with_flat_values(self._unescape(tokens.flat_values))
        tokens = tf.ragged.boolean_mask(tokens, tf.not_equal(tokens, ""))
        is_word = tf.strings.regex_full_match(tokens.flat_values, r"(?s)[\p{L}\p{N}].*")
        rows = tokens.value_rowids()
        after_word = is_word[:-1] & tf.equal(rows[:-1], rows[1:])
        spaced = is_word & tf.concat([tf.zeros_like(is_word[:1]), after_word], 0)
        spaces = tf.where(spaced, " ", "")
        tokens = tokens.with_flat_values(spaces + tokens.flat_values)
        return tf.strings.reduce_join(tokens, axis=-1)

    def begins_word(self, ids: tf.Tensor) -> tf.Tensor:
        # Whole tokens decide; see `SubwordTokenizer.word_spans`.
        pieces = self.pieces(ids)
        special = tf.logical_or(tf.equal(ids, PAD_ID), tf.equal(ids, EOS_ID))
        ends = tf.strings.regex_full_match(pieces, "(?s).*_") | special
        starts = tf.concat([tf.ones_like(ends[:1]), ends[:-1]], 0) | special
        number = tf.cumsum(tf.cast(starts, tf.int64)) - 1
        pieces = tf.where(special, "", pieces)
        tokens = tf.RaggedTensor.from_value_rowids(pieces, number)
        texts = tf.strings.reduce_join(tokens, axis=-1)
        texts = self._unescape(tf.strings.regex_replace(texts, "_$", ""))
        last = tf.strings.regex_replace(texts[:-1], r"(?s)^.*(.)$", r"\1")
        first = tf.strings.regex_replace(texts[1:], r"(?s)^(.).*$", r"\1")
        begins = tf.strings.regex_full_match(last + first, _WORDS_MEET)
        begins = tf.concat([tf.ones_like(starts[:1]), begins], 0)
        return starts & tf.gather(begins, number)

    def _unescape(self, tokens: tf.Tensor) -> tf.Tensor:
        tokens = tf.strings.regex_replace(tokens, "\x00", _NUL)
        parts = tensorflow_text.regex_split(tokens, _ESCAPED, _ESCAPED)
        flat = tf.strings.regex_replace(parts.flat_values, _NUL, "\x00")
        digits = tf.strings.regex_replace(flat, r"^\\0*([0-9]{1,7});$", r"\1")
        is_number = tf.strings.regex_full_match(flat, r"\\[0-9]+;")
        is_small = is_number & tf.strings.regex_full_match(digits, r"[0-9]{1,7}")
        codes = tf.strings.to_number(tf.where(is_small, digits, "1114112"), tf.int32)
        numbers = tf.strings.unicode_encode(
            codes[:, None], "UTF-8", errors="replace", replacement_char=self._invalid
        )
        flat = tf.where(tf.equal(flat, "\\u"), "_", flat)
        flat = tf.where(tf.equal(flat, "\\\\"), "\\", flat)
        flat = tf.where(is_number, numbers, flat)
        return tf.strings.reduce_join(parts.with_flat_values(flat), axis=-1)


def _without_nul(texts: Iterable[str]) -> list[str]:
    return [text.replace("\0", _NUL) for text in texts]


def _without_inner_spaces(tokens: tf.RaggedTensor) -> tf.RaggedTensor:
    """Drop tokens of one space, except at the start and at the end of a text."""
    places = tf.ragged.range(tokens.row_lengths())
    last = tf.gather(tokens.row_lengths(), tokens.value_rowids()) - 1
    inside = (places.flat_values > 0) & (places.flat_values < last)
    kept = tf.logical_not(inside & tf.equal(tokens.flat_values, " "))
    return tf.ragged.boolean_mask(tokens, tokens.with_flat_values(kept))
