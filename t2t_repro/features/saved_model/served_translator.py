"""SavedModel: raw strings in, translations and scores out.

Tokenization, beam search and detokenization are part of the graph. A program that loads
it imports `tensorflow` and `tensorflow_text` (whose operations TensorFlow Serving has
built in) and nothing of this package. Differs from tensor2tensor (`serving/export.py`),
whose export takes serialized ids: here, a client needs no vocabulary.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_repro.constants import EOS_ID, NO_WORD, PAD_ID
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.beam_state import RowTensors
from t2t_repro.decoding.next_tokens import MINUS_INFINITY
from t2t_repro.decoding.sentences import followed_grammar, longest_piece
from t2t_repro.decoding.translator import members, search_translations
from t2t_repro.errors import UsageError
from t2t_repro.features.saved_model.scored_pairs import (
    PAIRS,
    ScoredPairs,
    map_groups,
    truncate,
)
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import Tokenizer
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
    """Give each piece the words that begin in it; see `source_pieces.with_words`.

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


class ServedTranslator(tf.Module):
    """A trained system as TensorFlow functions of strings.

    Every function answers for every row of its batch, whatever the strings contain. A
    row that is too long is cut and marked in "truncated", bool `[batch]`, so that it
    does not fail or delay the others.

    Args:
        model: A `Transformer` or `Ensemble` with trained weights.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the outputs.
        hparams: Settings of the search. `batch_size` limits the source tokens that are
            searched at once, and so the memory for a batch of any size.
        max_input_length: Longest source in tokens, including EOS, to translate in one
            piece, as for `Translator`.
        max_source_tokens: Largest number of tokens of a source to translate, rounded up
            to whole pieces. The rest of a longer source is ignored, so that its
            translation is the beginning of the one by `Translator`.
        problem: Problem that may have a grammar.

    Attributes:
        attention: Function of `PAIRS` that returns all attention weights; see
            `ScoredPairs.attention`. None for an ensemble, whose members may have
            different layers.

    Raises:
        UsageError: If `max_source_tokens` is less than 1.
        UserError: If the hparams follow a grammar that the problem does not have.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
        max_source_tokens: int,
        problem: Problem | None = None,
    ) -> None:
        super().__init__()
        self._grammar = followed_grammar(
            hparams, problem or Problem(), target_tokenizer
        )
        if max_source_tokens < 1:
            raise UsageError(
                f"received max_source_tokens={max_source_tokens}, expected at least 1."
            )
        # A SavedModel stores attributes. The Keras model is not one: its variables and
        # the functions below are all that is served.
        self.weights = [variable.value for variable in model.variables]
        self.source_tokenizer: InGraphTokenizer = source_tokenizer.in_graph()
        self.target_tokenizer: InGraphTokenizer = target_tokenizer.in_graph()
        self._longest_piece = longest_piece(max_input_length)
        pieces = -(-max_source_tokens // self._longest_piece)
        self._longest_source = pieces * self._longest_piece
        self._group_size = max(hparams.batch_size, self._longest_piece + 1)
        self._pairs = ScoredPairs(
            model,
            self.source_tokenizer,
            self.target_tokenizer,
            max_input_length,
            self._group_size,
        )
        self.attention = None
        if len(members(model)) == 1:
            self.attention = tf.function(self._pairs.attention, input_signature=PAIRS)
        # Nothing is repaired here. A search for only the best hypothesis stops before
        # the others are certain.
        self._best = hparams.replace(prefer_unrepaired=False, return_beams=False)
        self._every = self._best.replace(return_beams=True)
        self._search = functools.partial(search_translations, model)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def translate(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the best translation of every sentence.

        Args:
            inputs: UTF-8 strings, `[batch]`. Invalid UTF-8 is read as U+FFFD.

        Returns:
            "outputs", string `[batch]`; "scores", float32 `[batch]`: log-probability
            over length penalty; and "truncated", bool `[batch]`.
        """
        texts, scores, truncated = self._hypotheses(inputs, self._best)
        return _translations(texts[:, 0], scores[:, 0], truncated)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def n_best(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all hypotheses of every sentence, best first.

        Args:
            inputs: UTF-8 strings, `[batch]`. Invalid UTF-8 is read as U+FFFD.

        Returns:
            "outputs", string `[batch, beam_size]`; "scores", float32
            `[batch, beam_size]`; and "truncated", bool `[batch]`. If there are fewer
            than `beam_size`, the rest is empty, with scores of at most about -1e9. A
            source without text has only empty outputs, with score 0.
        """
        return _translations(*self._hypotheses(inputs, self._every))

    @tf.function(input_signature=PAIRS)
    def score(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return log-probabilities of given translations; see `ScoredPairs.score`."""
        return self._pairs.score(inputs, targets)

    def _hypotheses(
        self, inputs: tf.Tensor, hparams: DecodeHParams
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return texts and scores `[batch, hypotheses]`, and truncated `[batch]`."""
        ids, truncated = truncate(
            self.source_tokenizer.encode(inputs), self._longest_source
        )
        pieces = cut_into_pieces(ids, self._longest_piece)
        kinds = None
        if self._grammar is not None:
            kinds = kinds_of_pieces(
                self._grammar.word_kinds_in_graph(inputs),
                pieces,
                self.source_tokenizer,
                truncated,
            )
        texts, scores = self._translate_pieces(pieces.ids, hparams, kinds)
        # The join's `separator` would be dropped after an empty text.
        spaces = tf.where(pieces.is_first, "", " ")
        texts = spaces[:, None] + texts
        # A sentence without tokens has no piece, and so an empty translation.
        count = tf.size(inputs)
        scores = tf.math.unsorted_segment_sum(scores, pieces.sentences, count)
        texts = tf.strings.unsorted_segment_join(texts, pieces.sentences, count)
        return texts, scores, truncated

    def _translate_pieces(
        self,
        pieces: tf.RaggedTensor,
        hparams: DecodeHParams,
        kinds: tf.RaggedTensor | None,
    ) -> list[tf.Tensor]:
        """Return texts and scores `[pieces, hypotheses]`, searched group by group."""
        sources = tf.concat([pieces, tf.fill([pieces.nrows(), 1], EOS_ID)], axis=1)
        wanted = hparams.num_hypotheses

        def translate(chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            group = tf.gather(sources, chosen).to_tensor(PAD_ID)
            per_row: RowTensors = {}
            if kinds is not None:
                per_row["word_kinds"] = padded_kinds(tf.gather(kinds, chosen))
            found = self._search(group, hparams, per_row, self._grammar)
            ids = found.ids[:, :wanted]
            length = tf.shape(ids)[2]
            texts = self.target_tokenizer.decode(tf.reshape(ids, [-1, length]))
            return tf.reshape(texts, [-1, wanted]), found.scores[:, :wanted]

        return map_groups(
            translate,
            tf.cast(sources.row_lengths(), tf.int32),
            self._group_size,
            [
                tf.TensorSpec([None, wanted], tf.string),
                tf.TensorSpec([None, wanted], tf.float32),
            ],
        )


def _translations(
    texts: tf.Tensor, scores: tf.Tensor, truncated: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Name the outputs; the texts of empty places are empty."""
    exists = scores > 0.5 * MINUS_INFINITY
    return {
        "outputs": tf.where(exists, texts, ""),
        "scores": scores,
        "truncated": truncated,
    }
