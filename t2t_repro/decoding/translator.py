"""Translate text with a trained model, in batches.

tensor2tensor: `utils/decoding.py: decode_from_file`.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.constants import PAD_ID
from t2t_repro.data.batch_plan import batches_by_length, padded
from t2t_repro.data.problem import Problem, TargetGrammar
from t2t_repro.decoding.beam import BeamSearchResult, beam_search
from t2t_repro.decoding.beam_state import BeamSearchOptions, RowTensors
from t2t_repro.decoding.coverage import initial_coverage, with_attention
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.decoding.next_tokens import Constraints, Sampling
from t2t_repro.decoding.sentences import SentenceTranslator
from t2t_repro.decoding.source_pieces import Piece, row_arrays
from t2t_repro.machine import available_cores
from t2t_repro.recently_used import RecentlyUsed
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer import Tokenizer

Item = TypeVar("Item")
Result = TypeVar("Result")
Search = Callable[[tf.Tensor, RowTensors], tuple[tf.Tensor, tf.Tensor]]


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], num_threads: int
) -> Iterator[Result]:
    """Apply a function to items in threads, and yield the results in order.

    At most `2 * num_threads + 1` items are submitted before a result is yielded. An
    exception of the function is raised in place of its result. Then, or when the caller
    stops, items that have not begun are dropped, and the function waits for those that
    are running.

    Args:
        function: Called in the threads.
        items: Iterated in the caller's thread.
        num_threads: Number of threads. With 1, the caller's thread does the work.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(num_threads)
    waiting: collections.deque[Future[Result]] = collections.deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


# Each batch in the search needs memory for its own caches.
MAX_PARALLEL_BATCHES = 8
MAX_SEARCHES = 16  # each keeps tens of megabytes
_ROW_SPECS = {
    "prefixes": tf.TensorSpec([None, None], tf.int32),
    "uniform": tf.TensorSpec([None, None], tf.float64),
    "word_kinds": tf.TensorSpec([None, None], tf.int32),
}


def num_parallel_batches() -> int:
    """Return the number of batches that `Translator` searches at the same time.

    The operations of a search are too small for several cores. Two batches on two cores
    take half the time that they take one after the other. If TensorFlow is limited to
    one thread per operation, each core therefore searches its own batch. A GPU searches
    one batch at a time.
    """
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    if threads != 1 or tf.config.list_logical_devices("GPU"):
        return 1
    return min(available_cores(), MAX_PARALLEL_BATCHES)


def search_translations(
    model: keras.Model,
    inputs: tf.Tensor,
    hparams: DecodeHParams,
    per_row: RowTensors | None = None,
    grammar: TargetGrammar | None = None,
) -> BeamSearchResult:
    """Search for translations of a batch, at most `extra_length` tokens longer.

    Args:
        model: A `Transformer` or `Ensemble`.
        inputs: Source ids with EOS, int32 `[batch, source_length]`, padded.
        hparams: Settings of the search.
        per_row: Prefixes, if any; random numbers if the settings sample; kinds of the
            words if there is a grammar.
        grammar: Grammar of the outputs, or None for any.

    Returns:
        Hypotheses, best first.
    """
    source_lengths = tf.math.count_nonzero(
        tf.not_equal(inputs, PAD_ID), axis=1, dtype=tf.int32
    )
    step = functools.partial(
        model.decode_step, append=True, columns=model.softmax_columns()
    )
    cache, per_row = model.initial_cache(inputs), per_row or {}
    if hparams.coverage_penalty:
        step = with_attention(step, _memory_attentions(model))
        coverage = initial_coverage(inputs, hparams.beam_size)
        cache = {"model": cache, "attention": coverage}
        per_row = {**per_row, "coverage": coverage}
    return beam_search(
        step,
        cache,
        source_lengths + hparams.extra_length,
        keras.ops.shape(inputs)[1] + hparams.extra_length,
        _search_options(hparams, grammar),
        per_row,
    )


def members(model: keras.Model) -> list[keras.Model]:
    """Return the members of an ensemble, or the model itself."""
    return getattr(model, "members", [model])


def _memory_attentions(model: keras.Model) -> list[keras.layers.Layer]:
    """Return the last attention to the source of each member."""
    return [one.decoder.layers[-1].memory_attention for one in members(model)]


def _search_options(
    hparams: DecodeHParams, grammar: TargetGrammar | None
) -> BeamSearchOptions:
    constrains = hparams.constrains or grammar is not None
    constraints = Constraints(
        min_length=hparams.min_length,
        no_repeat_ngram_size=hparams.no_repeat_ngram_size,
        grammar=grammar,
    )
    sampling = Sampling(
        temperature=hparams.sampling_temp,
        top_k=hparams.sampling_keep_top_k,
        top_p=hparams.sampling_keep_top_p,
    )
    return BeamSearchOptions(
        beam_size=hparams.beam_size,
        alpha=hparams.alpha,
        num_hypotheses=hparams.num_hypotheses,
        static_shapes=False,
        constraints=constraints if constrains else None,
        sampling=sampling if hparams.samples else None,
        coverage_penalty=hparams.coverage_penalty,
        word_cost=hparams.word_cost if grammar is not None else 0.0,
    )


class Translator(SentenceTranslator):
    """Translator of lists of sentences with a model in memory.

    Sentences are sorted by length and batched by tokens, whatever their lengths:
    padding costs less than one more search. The translation of a sentence does not
    depend on its batch, up to rounding.

    Args:
        model: A `Transformer` or `Ensemble`; its weights may change between calls.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the outputs.
        hparams: See `DecodeHParams`.
        max_input_length: Longest source in tokens, including EOS, to translate in one
            piece. A longer one is cut, and the translations of its pieces are joined.
        problem: See `SentenceTranslator`.
        searches: Searches of the model that translators share; by default its own.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
        problem: Problem | None = None,
        searches: TracedSearches | None = None,
    ) -> None:
        super().__init__(
            source_tokenizer, target_tokenizer, hparams, max_input_length, problem
        )
        self._searches = searches or TracedSearches(model)

    def _search_batches(
        self, pieces: list[Piece]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        def search(
            numbered: tuple[list[int], np.ndarray],
        ) -> tuple[list[int], list[list[Hypothesis]]]:
            numbers, batch = numbered
            return numbers, self._search_batch(batch, [pieces[n] for n in numbers])

        batches = self._batches([piece.ids for piece in pieces])
        yield from map_in_threads(search, batches, num_parallel_batches())

    def _search_batch(
        self, batch: np.ndarray, pieces: list[Piece]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of the pieces, whose ids are the rows of a batch."""
        arrays = row_arrays(pieces, batch.shape[1], self.hparams)
        search = self._searches.get(self.hparams, tuple(sorted(arrays)), self.grammar)
        per_row = keras.tree.map_structure(tf.constant, arrays)
        ids, scores = search(tf.constant(batch), per_row)
        found = zip(ids.numpy(), scores.numpy(), strict=True)
        return [self._hypotheses(*sentence) for sentence in found]

    def _batches(
        self, sources: list[list[int]]
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield the numbers of pieces and their padded ids, longest first."""
        lengths = [*map(len, sources)]
        for numbers in batches_by_length(lengths, self.hparams.batch_size):
            rows = [sources[number] for number in numbers]
            yield numbers, padded(rows, len(rows[0]))

    def _hypotheses(self, ids: np.ndarray, scores: np.ndarray) -> list[Hypothesis]:
        """Decode `[beam, length]` ids, without empty places."""
        wanted = self.hparams.num_hypotheses
        return [
            Hypothesis(
                self.target_tokenizer.decode(list(row)),
                float(score),
                ids=tuple(int(token) for token in row if token != PAD_ID),
            )
            for row, score in zip(ids[:wanted], scores[:wanted], strict=True)
            if row[0] != PAD_ID
        ]


class TracedSearches:
    """The searches with a model that were used last, as graphs; threads may share it.

    Settings that are no part of a graph, such as `sampling_seed`, share one.

    Args:
        model: See `Translator`.
    """

    def __init__(self, model: keras.Model) -> None:
        self._model = model
        self._searches = RecentlyUsed[_TracedSearch](MAX_SEARCHES)

    def get(
        self,
        hparams: DecodeHParams,
        per_row: Sequence[str],
        grammar: TargetGrammar | None,
    ) -> _TracedSearch:
        """Return a search; for the arguments, see `_traced_search`."""
        # A grammar may have no hash. No other has its id while its search is kept.
        options = _search_options(hparams, None), hparams.extra_length
        key = options, hparams.word_cost, tuple(per_row), id(grammar)
        return self._searches.get(
            key,
            lambda: _TracedSearch(
                _traced_search(self._model, hparams, per_row, grammar)
            ),
        )


class _TracedSearch:
    """A search, whose first run is alone.

    TensorFlow would optimize a new graph in every thread that runs it.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._lock = threading.Lock()
        self._has_run = False

    def __call__(
        self, inputs: tf.Tensor, per_row: RowTensors
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if not self._has_run:
            with self._lock:
                if not self._has_run:
                    found = self._search(inputs, per_row)
                    self._has_run = True
                    return found
        return self._search(inputs, per_row)


def _traced_search(
    model: keras.Model,
    hparams: DecodeHParams,
    per_row: Sequence[str],
    grammar: TargetGrammar | None,
) -> Search:
    """Make the search a graph, which is traced when it is first called.

    It is not compiled by XLA: static shapes need room for all positions from the start,
    which took five times as long on short sentences. Nor is it converted by AutoGraph,
    which takes seconds and finds nothing to convert.

    Args:
        model: See `Translator`.
        hparams: Settings of the search.
        per_row: Names of the `RowTensors` that it is called with.
        grammar: Grammar of the outputs, or None for any.
    """
    signature = [
        tf.TensorSpec([None, None], tf.int32),
        {name: _ROW_SPECS[name] for name in per_row},
    ]

    @tf.function(input_signature=signature, autograph=False)
    def search(inputs: tf.Tensor, per_row: RowTensors) -> tuple[tf.Tensor, tf.Tensor]:
        result = search_translations(model, inputs, hparams, per_row, grammar)
        return result.ids, result.scores

    return search
