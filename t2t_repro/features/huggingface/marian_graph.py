"""The tokenizer of a MarianMT model as TensorFlow operations."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text

from t2t_repro.constants import UNK_ID
from t2t_repro.text.in_graph import InGraphTokenizer, lookup_table
from t2t_repro.text.lines import PYTHON_SPACES
from t2t_repro.text.sampled_subwords import SPACE

_WITH_CODE = "(?s)>>.*?<<.*"
_CODE = "(?s)^(>>.*?<<).*$"


class InGraphMarian(InGraphTokenizer):
    """The operations of a `MarianTokenizer`.

    Args:
        entries: The entry of each id.
        spm: Content of the SentencePiece model.
    """

    def __init__(self, entries: Sequence[str], spm: bytes) -> None:
        super().__init__()
        self._entries = tf.constant(list(entries))
        ids = {entry: token for token, entry in enumerate(entries)}
        self._table = lookup_table(ids, UNK_ID)
        self._splitter = tensorflow_text.SentencepieceTokenizer(
            model=spm, out_type=tf.string
        )

    def _encode_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        has_code = tf.strings.regex_full_match(texts, _WITH_CODE)
        codes = tf.strings.regex_replace(texts, _CODE, r"\1")
        codes = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(codes, has_code), tf.cast(has_code, tf.int64)
        )
        rest = tf.strings.regex_replace(texts, "(?s)^>>.*?<<", "", replace_global=False)
        pieces = tf.concat([codes, self._splitter.tokenize(rest)], axis=1)
        return pieces.with_flat_values(self._table.lookup(pieces.flat_values))

    def _decode_ragged(self, ids: tf.RaggedTensor) -> tf.Tensor:
        known = tf.ragged.boolean_mask(ids, tf.not_equal(ids, UNK_ID))
        texts = self._splitter.detokenize(self.pieces(known))
        texts = tf.strings.regex_replace(texts, SPACE, " ")
        return tf.strings.regex_replace(texts, f"^{PYTHON_SPACES}|{PYTHON_SPACES}$", "")

    def begins_word(self, ids: tf.Tensor) -> tf.Tensor:
        first = tf.strings.substr(self.pieces(ids), 0, 1, unit="UTF8_CHAR")
        return tf.equal(first, SPACE)
