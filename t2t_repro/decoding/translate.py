"""Text in, text out: batches of sentences through a trained model.

tensor2tensor: `utils/decoding.py: decode_from_file`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.data.problem import Output
from t2t_repro.decoding.beam_search import (
    BeamSearchOptions,
    BeamSearchResult,
    beam_search,
)
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

MIN_SOURCE_BUCKET = 8  # tokens
SOURCE_BUCKET_STEP = 1.4
CACHE_GROWTH = 32  # target positions


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: Log-probability over length penalty, in nats.
        repairs: What was repaired in what the model wrote; see `Output`.
    """

    text: str
    score: float
    repairs: tuple[str, ...] = ()


def longest_piece(max_input_length: int) -> int:
    """Return how many tokens of a source are translated at once, EOS left out.

    Args:
        max_input_length: Longest source that a model is to be given, EOS included.
    """
    return max(max_input_length, MIN_SOURCE_BUCKET) - 1


def search_translations(
    model: keras.Model,
    inputs: tf.Tensor,
    hparams: DecodeHParams,
    *,
    static_shapes: bool = False,
) -> BeamSearchResult:
    """Search translations of a batch, each at most `extra_length` tokens longer.

    Args:
        model: A `Transformer`.
        inputs: Source ids with EOS, int32 `[batch, source_length]`, padded.
        hparams: Beam size, alpha and extra length.
        static_shapes: Whether no shape may change on the way, as XLA demands.

    Returns:
        Hypotheses, best first.
    """
    source_lengths = tf.math.count_nonzero(
        tf.not_equal(inputs, PAD_ID), axis=1, dtype=tf.int32
    )
    max_length = keras.ops.shape(inputs)[1] + hparams.extra_length
    return beam_search(
        model.decode_step,
        model.grow_cache,
        model.initial_cache(inputs),
        source_lengths + hparams.extra_length,
        max_length,
        BeamSearchOptions(
            beam_size=hparams.beam_size,
            alpha=hparams.alpha,
            num_hypotheses=hparams.num_hypotheses,
            cache_growth=0 if static_shapes else CACHE_GROWTH,
        ),
    )


class Translator:
    """Translates lists of sentences with a model in memory.

    Sentences are sorted by length, batched by tokens and padded to one of few
    lengths. What a sentence becomes does not depend on its batch.

    Args:
        model: A `Transformer`; its weights may change between calls.
        source_tokenizer: Of the inputs.
        target_tokenizer: Of the outputs.
        hparams: See `DecodeHParams`.
        max_input_length: Longest source in tokens, EOS included, that is translated
            in one piece; a longer one is cut into pieces whose translations are
            joined.
        normalize_source: Makes of a user's sentence what the model has learnt to read.
        postprocess: Makes of a source and what the model has written for it what a user
            wants.
        jit_compile: Whether XLA compiles the search, once for each batch shape.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
        *,
        normalize_source: Callable[[str], str] = str,
        postprocess: Callable[[str, str], Output] = lambda source, written: Output(
            written
        ),
        jit_compile: bool = False,
    ) -> None:
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.hparams = hparams
        self._source_form = normalize_source
        self._postprocess = postprocess
        self._jit_compile = jit_compile
        self._plan = BatchPlan.from_token_budget(
            batch_size=max(hparams.batch_size, max_input_length),
            max_length=longest_piece(max_input_length) + 1,
            min_length_bucket=MIN_SOURCE_BUCKET,
            length_bucket_step=SOURCE_BUCKET_STEP,
        )

        @tf.function(
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            jit_compile=jit_compile,
        )
        def search(inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            result = search_translations(
                model, inputs, hparams, static_shapes=jit_compile
            )
            return result.ids, result.scores

        self._search = search

    def translate(
        self,
        sentences: Sequence[str],
        advance: Callable[[int], object] = lambda count: None,
    ) -> list[list[Hypothesis]]:
        """Translate sentences.

        Args:
            sentences: Source texts; for one without any token the model is not asked
                and has written nothing.
            advance: Called after every batch with the number of sentences that it
                completed, and at the end with the number of sentences without tokens.

        Returns:
            For each sentence its hypotheses, best first: `beam_size` of them if the
            hparams' `return_beams` is set (fewer if fewer exist), else one. With
            `prefer_unrepaired`, what was repaired stands behind what was not.
        """
        pieces = [
            (number, piece)
            for number, ids in enumerate(
                self.source_tokenizer.encode_batch([*map(self._source_form, sentences)])
            )
            for piece in self._pieces(number, ids)
        ]
        left = Counter(number for number, _ in pieces)

        def count_sentences(places: list[int]) -> None:
            """Report the sentences of which these pieces were the last."""
            left.subtract(pieces[place][0] for place in places)
            numbers = {pieces[place][0] for place in places}
            advance(sum(left[number] == 0 for number in numbers))

        found: dict[int, list[list[Hypothesis]]] = {}
        translated = self._translate_ids([ids for _, ids in pieces], count_sentences)
        for (number, _), hypotheses in zip(pieces, translated, strict=True):
            found.setdefault(number, []).append(hypotheses)
        advance(len(sentences) - len(found))
        nothing = [[Hypothesis("", 0.0)]]
        return [
            self._finished(sentence, found.get(number, nothing))
            for number, sentence in enumerate(sentences)
        ]

    def _finished(
        self, sentence: str, pieces: list[list[Hypothesis]]
    ) -> list[Hypothesis]:
        finished = []
        for hypothesis in _join(pieces):
            output = self._postprocess(sentence, hypothesis.text)
            finished.append(Hypothesis(output.text, hypothesis.score, output.repairs))
        if self.hparams.prefer_unrepaired:
            finished.sort(key=lambda hypothesis: bool(hypothesis.repairs))
        return finished if self.hparams.return_beams else finished[:1]

    def _pieces(self, number: int, ids: list[int]) -> list[list[int]]:
        """Append EOS, and cut a source that is too long for the model."""
        room = self._plan.boundaries[-1] - 1
        if len(ids) > room:
            logger.warning(
                "line %d has %d tokens, more than %d: translated in %d pieces",
                number + 1,
                len(ids),
                room,
                -(-len(ids) // room),
            )
        return [
            [*ids[start : start + room], EOS_ID] for start in range(0, len(ids), room)
        ]

    def _translate_ids(
        self, sources: list[list[int]], done: Callable[[list[int]], object]
    ) -> list[list[Hypothesis]]:
        """Translate ids; call `done` with the places in `sources` of each batch."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for numbers, batch in self._batches(sources):
            ids, scores = self._search(tf.constant(batch))
            for row, number in enumerate(numbers):
                results[number] = self._hypotheses(
                    ids[row].numpy(), scores[row].numpy()
                )
            done(numbers)
        return results

    def _batches(
        self, sources: list[list[int]]
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield numbers of sentences and their padded ids, longest first.

        Longest first shows at once whether memory suffices. For XLA, a batch that
        is not full is filled with its last sentence, so that shapes stay few.
        """
        buckets: dict[int, list[int]] = {}
        for number in sorted(range(len(sources)), key=lambda n: -len(sources[n])):
            bucket = int(np.searchsorted(self._plan.boundaries, len(sources[number])))
            buckets.setdefault(bucket, []).append(number)
        for bucket, numbers in buckets.items():
            rows, length = self._plan.rows[bucket], self._plan.boundaries[bucket]
            for start in range(0, len(numbers), rows):
                chosen = numbers[start : start + rows]
                height = rows if self._jit_compile else len(chosen)
                batch = np.full((height, length), PAD_ID, np.int32)
                for row in range(height):
                    source = sources[chosen[min(row, len(chosen) - 1)]]
                    batch[row, : len(source)] = source
                yield chosen, batch

    def _hypotheses(self, ids: np.ndarray, scores: np.ndarray) -> list[Hypothesis]:
        """Decode `[beam, length]` ids; places that stayed empty are left out."""
        wanted = self.hparams.num_hypotheses
        return [
            Hypothesis(self.target_tokenizer.decode(list(row)), float(score))
            for row, score in zip(ids[:wanted], scores[:wanted], strict=True)
            if row[0] != PAD_ID
        ]


def _join(pieces: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Join the pieces of a sentence, best with best, second with second."""
    if len(pieces) == 1:
        return pieces[0]
    return [
        Hypothesis(" ".join(h.text for h in row), sum(h.score for h in row))
        for row in zip(*pieces, strict=False)
    ]
