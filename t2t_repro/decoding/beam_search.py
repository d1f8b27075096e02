"""Beam search in `keras.ops`: one loop, static shapes, caches are never gathered.

Paper section 6.1: beam 4, length penalty alpha 0.6, at most source length + 50
tokens, "terminate early when possible". tensor2tensor: `utils/beam_search.py`.
With beam_size 1 it is greedy search: the best token at every step, until the first EOS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, PAD_ID

# Below every reachable score; sums of it stay within the range of float32.
MINUS_INFINITY = -1e9

# (ids [batch, beam], position, history [batch, beam, slots], cache)
#   -> (logits [batch, beam, vocab], cache)
StepFunction = Callable[
    [KerasTensor, KerasTensor, KerasTensor, Any], tuple[KerasTensor, Any]
]

# (cache, slots) -> the cache with that many slots, the new ones after the others
GrowFunction = Callable[[Any, KerasTensor | int], Any]


@dataclasses.dataclass(frozen=True)
class BeamSearchOptions:
    """Settings of the search.

    Attributes:
        beam_size: Number of hypotheses kept per sentence (K).
        alpha: Exponent of the length penalty ((5 + length) / 6)^alpha; 0 means none.
        num_hypotheses: Number of best finished hypotheses that must be certain before
            the search of a sentence ends, from 1 to `beam_size`.
        cache_growth: Number of positions by which the cache grows at a time. The time
            of a step is proportional to the size of the cache, and most sentences end
            long before their limit. 0 allocates all positions at once, which XLA and
            JAX need because their shapes are static.
    """

    beam_size: int
    alpha: float
    num_hypotheses: int = 1
    cache_growth: int = 0


@dataclasses.dataclass
class BeamState:
    """The loop variables of the search.

    "Living" hypotheses can be extended; "finished" ones end in EOS. Both are sorted,
    best first. Empty places have a score of about `MINUS_INFINITY`.

    Attributes:
        position: int32 scalar, number of tokens of the living hypotheses.
        living_ids: int32 `[batch, beam, max_length]`, padded with PAD_ID.
        living_log_probs: float32 `[batch, beam]`, sums of log-probabilities.
        history: bool `[batch, beam, slots]`, the cache slots on the path of each
            living hypothesis. Slot p * beam + k was written at position p by the
            hypothesis that was then in place k.
        finished_ids: int32 `[batch, beam, max_length]`.
        finished_scores: float32 `[batch, beam]`, with length penalty.
        done: bool `[batch]`, whether the answer for a sentence can no longer change.
        cache: Nested tensors, `[batch, ...]`, returned by the step function.
    """

    position: KerasTensor
    living_ids: KerasTensor
    living_log_probs: KerasTensor
    history: KerasTensor
    finished_ids: KerasTensor
    finished_scores: KerasTensor
    done: KerasTensor
    cache: Any

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the fields in order, as loop variables."""
        return tuple(getattr(self, f.name) for f in dataclasses.fields(self))


@dataclasses.dataclass(frozen=True)
class BeamSearchResult:
    """Hypotheses of every sentence, best first.

    Attributes:
        ids: int32 `[batch, beam, max_length]`, including EOS, padded with PAD_ID.
        scores: float32 `[batch, beam]`: log-probability over length penalty.
    """

    ids: KerasTensor
    scores: KerasTensor


def length_penalty(length: KerasTensor, alpha: float) -> KerasTensor:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14).

    Args:
        length: Number of tokens, including EOS.
        alpha: Exponent.

    Returns:
        float32, of the same shape.
    """
    return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, alpha)


def beam_search(
    step_function: StepFunction,
    grow_function: GrowFunction,
    cache: Any,
    max_lengths: KerasTensor,
    max_length: int | KerasTensor,
    options: BeamSearchOptions,
) -> BeamSearchResult:
    """Find the best finished hypotheses of every sentence.

    Each step extends the K living hypotheses by every token and takes the 2K best
    extensions. At most K of them end, so at least K can be extended again. (With K = 1
    only the best one is taken, because greedy search does not choose a worse one that
    ends.) A sentence is done when it reaches its own limit in `max_lengths`, or when no
    living hypothesis can rank above the requested finished ones: its log-probability
    can only fall, and its penalty is at most that of the longest length.
    Differs from tensor2tensor: every sentence has its own limit, and a sentence that is
    done does not change, so its answer does not depend on the batch; PAD is never
    generated; if no hypothesis has finished, those cut at the limit are returned, with
    the length penalty applied to their scores too.

    Args:
        step_function: `(ids, position, history, cache) -> (logits, cache)`; see
            `Transformer.decode_step`.
        grow_function: `(cache, slots) -> cache`; see `Transformer.grow_cache`.
        cache: Initial cache, without slots.
        max_lengths: int32 `[batch]`, limit of the tokens of each sentence, including
            EOS.
        max_length: Largest of `max_lengths`, which is the length of the output. A
            tensor if `cache_growth` is set, because inside a graph the shape of the
            cache must be unknown.
        options: Settings of the search.

    Returns:
        The hypotheses and their scores.
    """
    search = _Search(step_function, grow_function, max_lengths, max_length, options)
    state = BeamState(
        *ops.while_loop(
            lambda *state: search.should_continue(BeamState(*state)),
            lambda *state: search.step(BeamState(*state)).as_tuple(),
            search.initial_state(cache).as_tuple(),
        )
    )
    return search.result(state)


class _Search:
    """The steps of the loop; for the arguments, see `beam_search`."""

    def __init__(
        self,
        step_function: StepFunction,
        grow_function: GrowFunction,
        max_lengths: KerasTensor,
        max_length: int | KerasTensor,
        options: BeamSearchOptions,
    ) -> None:
        self.step_function = step_function
        self.grow_function = grow_function
        self.cache_growth = options.cache_growth
        self.max_lengths = max_lengths
        self.max_length = max_length
        self.beam_size = options.beam_size
        self.num_extensions = 2 * options.beam_size if options.beam_size > 1 else 1
        self.alpha = options.alpha
        self.num_hypotheses = options.num_hypotheses

    def initial_state(self, cache: Any) -> BeamState:
        batch, beam = ops.shape(self.max_lengths)[0], self.beam_size
        no_ids = ops.full((batch, beam, self.max_length), PAD_ID, dtype="int32")
        no_scores = ops.full((batch, beam), MINUS_INFINITY, dtype="float32")
        # One living hypothesis, the empty one. K equal ones would stay equal.
        first = ops.arange(beam) == 0
        positions = self.max_length
        if self.cache_growth:
            positions = ops.minimum(self.cache_growth, self.max_length)
        return BeamState(
            position=ops.zeros((), dtype="int32"),
            living_ids=no_ids,
            living_log_probs=ops.where(first[None, :], 0.0, no_scores),
            history=ops.zeros((batch, beam, positions * beam), dtype="bool"),
            finished_ids=no_ids,
            finished_scores=no_scores,
            done=ops.zeros((batch,), dtype="bool"),
            cache=self.grow_function(cache, positions * beam),
        )

    def should_continue(self, state: BeamState) -> KerasTensor:
        return ops.logical_and(
            state.position < self.max_length, ops.logical_not(ops.all(state.done))
        )

    def _with_grown_cache(self, state: BeamState) -> BeamState:
        """Grow the cache if it has no slots left for this position."""
        batch, beam, slots = ops.shape(state.history)

        def grow() -> tuple[KerasTensor, Any]:
            positions = ops.minimum(state.position + self.cache_growth, self.max_length)
            unseen = ops.zeros((batch, beam, positions * beam - slots), dtype="bool")
            history = ops.concatenate([state.history, unseen], axis=2)
            return history, self.grow_function(state.cache, positions * beam)

        history, cache = ops.cond(
            state.position * beam >= slots, grow, lambda: (state.history, state.cache)
        )
        return dataclasses.replace(state, history=history, cache=cache)

    def step(self, state: BeamState) -> BeamState:
        if self.cache_growth:
            state = self._with_grown_cache(state)
        log_probs, history, cache = self._predict(state)
        scores, parents, tokens = self._best_extensions(state, log_probs)
        ids = _replace_column(
            _take_beams(state.living_ids, parents), state.position, tokens
        )
        ends = ops.equal(tokens, EOS_ID)
        finished_ids, finished_scores = self._finish(state, ids, scores, ends)
        # Keep the K best extensions that do not end.
        living_log_probs, places = ops.top_k(
            ops.where(ends, MINUS_INFINITY, scores), self.beam_size
        )
        # A sentence that is done keeps its living hypotheses; they may be its answer.
        new_state = BeamState(
            position=state.position + 1,
            living_ids=ops.where(
                state.done[:, None, None], state.living_ids, _take_beams(ids, places)
            ),
            living_log_probs=ops.where(
                state.done[:, None], state.living_log_probs, living_log_probs
            ),
            history=_take_beams(history, ops.take_along_axis(parents, places, axis=1)),
            finished_ids=finished_ids,
            finished_scores=finished_scores,
            done=state.done,
            cache=cache,
        )
        return dataclasses.replace(new_state, done=self._done(new_state))

    def _predict(self, state: BeamState) -> tuple[KerasTensor, KerasTensor, Any]:
        """Return log-probabilities `[batch, beam, vocab]`, history and cache."""
        column = ops.maximum(state.position - 1, 0)
        # PAD_ID before the first token
        ids = ops.take(state.living_ids, column, axis=2)
        own_slots = state.position * self.beam_size + ops.arange(self.beam_size)
        slots = ops.arange(ops.shape(state.history)[2])
        history = ops.logical_or(
            state.history, (slots[None, :] == own_slots[:, None])[None, :, :]
        )
        logits, cache = self.step_function(ids, state.position, history, state.cache)
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        never = ops.arange(log_probs.shape[-1]) == PAD_ID
        return ops.where(never, MINUS_INFINITY, log_probs), history, cache

    def _best_extensions(
        self, state: BeamState, log_probs: KerasTensor
    ) -> tuple[KerasTensor, KerasTensor, KerasTensor]:
        """Return scores, parents and tokens of the best extensions, `[batch, 2K]`."""
        vocab_size = log_probs.shape[-1]
        totals = state.living_log_probs[:, :, None] + log_probs
        flat = ops.reshape(totals, (ops.shape(totals)[0], self.beam_size * vocab_size))
        scores, indices = ops.top_k(flat, self.num_extensions)
        indices = ops.cast(indices, "int32")
        return scores, indices // vocab_size, indices % vocab_size

    def _finish(
        self,
        state: BeamState,
        ids: KerasTensor,
        scores: KerasTensor,
        ends: KerasTensor,
    ) -> tuple[KerasTensor, KerasTensor]:
        """Merge the extensions that end with the finished hypotheses."""
        # Extensions of an empty place do not count.
        real = ops.logical_and(ends, scores > 0.5 * MINUS_INFINITY)
        allowed = ops.logical_and(real, ops.logical_not(state.done)[:, None])
        penalized = scores / length_penalty(state.position + 1, self.alpha)
        all_scores = ops.concatenate(
            [state.finished_scores, ops.where(allowed, penalized, MINUS_INFINITY)],
            axis=1,
        )
        allowed_ids = ops.where(allowed[:, :, None], ids, PAD_ID)
        all_ids = ops.concatenate([state.finished_ids, allowed_ids], axis=1)
        finished_scores, places = ops.top_k(all_scores, self.beam_size)
        return _take_beams(all_ids, places), finished_scores

    def _done(self, state: BeamState) -> KerasTensor:
        reachable = state.living_log_probs[:, 0] / length_penalty(
            self.max_lengths, self.alpha
        )
        certain = state.finished_scores[:, self.num_hypotheses - 1] >= reachable
        at_limit = state.position >= self.max_lengths
        return ops.logical_or(state.done, ops.logical_or(certain, at_limit))

    def result(self, state: BeamState) -> BeamSearchResult:
        """Return the finished hypotheses of a sentence, or else the living ones."""
        any_finished = state.finished_scores[:, :1] > 0.5 * MINUS_INFINITY
        cut_scores = state.living_log_probs / length_penalty(
            ops.minimum(state.position, self.max_lengths)[:, None], self.alpha
        )
        return BeamSearchResult(
            ids=ops.where(
                any_finished[:, :, None], state.finished_ids, state.living_ids
            ),
            scores=ops.where(any_finished, state.finished_scores, cut_scores),
        )


def _take_beams(x: KerasTensor, places: KerasTensor) -> KerasTensor:
    """Gather hypotheses: `[batch, n, ...]` at `[batch, m]` gives `[batch, m, ...]`."""
    return ops.take_along_axis(x, ops.cast(places, "int32")[:, :, None], axis=1)


def _replace_column(
    ids: KerasTensor, column: KerasTensor, tokens: KerasTensor
) -> KerasTensor:
    """Write tokens `[batch, n]` at a position of ids `[batch, n, max_length]`."""
    here = ops.arange(ops.shape(ids)[2]) == column
    return ops.where(here[None, None, :], tokens[:, :, None], ids)
