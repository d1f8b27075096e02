"""SavedModel: raw strings in, translations and scores out.

Tokenisation, beam search and detokenisation are part of the graph. A program that loads
it imports `tensorflow` and `tensorflow_text` (whose operations TensorFlow Serving has
built in) and nothing of this package. tensor2tensor's export takes serialised ids
and leaves the vocabulary to the client (`serving/export.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.beam_search import MINUS_INFINITY, BeamSearchResult
from t2t_repro.decoding.translate import longest_piece, search_translations
from t2t_repro.errors import UserError
from t2t_repro.export.given_targets import PAIRS, ScoredPairs
from t2t_repro.files import atomic_folder
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import Tokenizer
from t2t_repro.text.in_graph import InGraphTokenizer


class ServedTranslator(tf.Module):
    """A trained system as TensorFlow functions of strings.

    Args:
        model: A `Transformer` with trained weights.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the outputs.
        hparams: Settings of the search.
        max_input_length: Longest source in tokens, including EOS, to translate in one
            piece, as for `Translator`.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
    ) -> None:
        super().__init__()
        # A SavedModel stores attributes. The Keras model is not one: its variables and
        # the functions below are all that is served.
        self.weights = [variable.value for variable in model.variables]
        self.source_tokenizer: InGraphTokenizer = source_tokenizer.in_graph()
        self.target_tokenizer: InGraphTokenizer = target_tokenizer.in_graph()
        self._pairs = ScoredPairs(
            model, self.source_tokenizer, self.target_tokenizer, max_input_length
        )
        self._longest_piece = longest_piece(max_input_length)
        # Nothing is repaired here. A search for only the best hypothesis stops before
        # the others are certain.
        hparams = hparams.replace(prefer_unrepaired=False)
        self._search = functools.partial(search_translations, model, hparams=hparams)
        every = hparams.replace(return_beams=True)
        self._search_all = functools.partial(search_translations, model, hparams=every)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def translate(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the best translation of every sentence.

        Args:
            inputs: UTF-8 strings, `[batch]`.

        Returns:
            "outputs", string `[batch]`, and "scores", float32 `[batch]`:
            log-probability over length penalty.
        """
        hypotheses = self._hypotheses(inputs, self._search)
        return {name: value[:, 0] for name, value in hypotheses.items()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def n_best(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all hypotheses of every sentence, best first.

        Args:
            inputs: UTF-8 strings, `[batch]`.

        Returns:
            "outputs", string `[batch, beam_size]`, and "scores", float32
            `[batch, beam_size]`. If there are fewer than `beam_size`, the rest is
            empty, with scores of about -1e9.
        """
        return self._hypotheses(inputs, self._search_all)

    @tf.function(input_signature=PAIRS)
    def score(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return how probable given translations are; see `ScoredPairs.score`."""
        return self._pairs.score(inputs, targets)

    @tf.function(input_signature=PAIRS)
    def attention(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all attention weights; see `ScoredPairs.attention`."""
        return self._pairs.attention(inputs, targets)

    def _hypotheses(
        self, inputs: tf.Tensor, search: Callable[[tf.Tensor], BeamSearchResult]
    ) -> dict[str, tf.Tensor]:
        pieces, sentences, is_first = _cut(
            self.source_tokenizer.encode(inputs), self._longest_piece
        )
        ends = tf.fill([pieces.nrows(), 1], EOS_ID)
        found = search(tf.concat([pieces, ends], axis=1).to_tensor(PAD_ID))
        rows, beam, length = tf.unstack(tf.shape(found.ids))
        texts = self.target_tokenizer.decode(
            tf.reshape(found.ids, [rows * beam, length])
        )
        # The join's `separator` would be dropped after an empty text.
        spaces = tf.where(is_first, "", " ")
        texts = spaces[:, None] + tf.reshape(texts, [rows, beam])
        # A sentence without tokens has no piece, and so an empty translation.
        count = tf.size(inputs)
        scores = tf.math.unsorted_segment_sum(found.scores, sentences, count)
        joined = tf.strings.unsorted_segment_join(texts, sentences, count)
        return {
            "outputs": tf.where(scores > 0.5 * MINUS_INFINITY, joined, ""),
            "scores": scores,
        }


def _cut(
    ids: tf.RaggedTensor, longest: int
) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
    """Cut sentences into pieces that fit the model.

    Args:
        ids: Ids of whole sentences, int32 `[batch, None]`.
        longest: Largest number of tokens per piece.

    Returns:
        The pieces, int32 `[pieces, None]`; the number of each one's sentence,
        `[pieces]`; and whether it is the first of its sentence, bool `[pieces]`.
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
    return pieces, sentences, tf.equal(tf.boolean_mask(place, begins), 0)


def export_saved_model(served: ServedTranslator, export_dir: str | Path) -> None:
    """Write a SavedModel, all of it or nothing.

    Args:
        served: System to write.
        export_dir: Folder to create.

    Raises:
        UserError: If the folder exists or cannot be written.
    """
    export_dir = Path(export_dir)
    if export_dir.exists():
        raise UserError(
            f"received export folder {export_dir}, which exists: remove it or give "
            "another."
        )
    signatures = {
        "serving_default": served.translate,
        "n_best": served.n_best,
        "score": served.score,
        "attention": served.attention,
    }
    try:
        with atomic_folder(export_dir) as folder:
            tf.saved_model.save(served, str(folder), signatures=signatures)
    except (OSError, tf.errors.OpError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UserError(f"cannot write {export_dir}: {reason}") from error
