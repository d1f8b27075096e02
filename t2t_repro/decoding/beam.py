"""Beam search in `keras.ops`: one loop, which never gathers a cache.

Paper section 6.1: beam 4, length penalty alpha 0.6, at most source length + 50
tokens, "terminate early when possible". tensor2tensor: `utils/beam_search.py`.
With beam_size 1 it is greedy search: the best token at every step, until the first EOS.

An option of `BeamSearchOptions` that is off adds no operation to the graph.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.beam_state import (
    BeamSearchOptions,
    BeamState,
    RowTensors,
    StepFunction,
    best_extensions,
    replace_column,
    take_beams,
)
from t2t_repro.decoding.coverage import coverage_penalty, with_coverage
from t2t_repro.decoding.hypothesis import length_penalty
from t2t_repro.decoding.next_tokens import MINUS_INFINITY

# Finished sentences leave the batch once they are at least one in this many rows.
# Gathering the other rows takes a small part of the time of a step.
ROWS_PER_DONE_ROW = 8


@dataclasses.dataclass(frozen=True)
class BeamSearchResult:
    """Hypotheses of every sentence, best first.

    Attributes:
        ids: int32 `[batch, beam, max_length]`, including EOS, padded with PAD_ID.
        scores: float32 `[batch, beam]`: log-probability over length penalty, plus
            any coverage penalty.
    """

    ids: KerasTensor
    scores: KerasTensor


def beam_search(
    step_function: StepFunction,
    cache: Any,
    max_lengths: KerasTensor,
    max_length: int | KerasTensor,
    options: BeamSearchOptions,
    per_row: RowTensors | None = None,
) -> BeamSearchResult:
    """Find the best finished hypotheses of every sentence.

    Each step extends the K living hypotheses by every token and takes the 2K best
    extensions. At most K of them end, so at least K can be extended again. (With K = 1
    only the best one is taken, because greedy search does not choose a worse one that
    ends.) A sentence is done when it reaches its own limit in `max_lengths`, or when no
    living hypothesis can rank above the requested finished ones: its log-probability
    can only fall, its length penalty is at most that of the longest length, and the
    coverage penalty is never positive.
    Differs from tensor2tensor: every sentence has its own limit, and a sentence that is
    done does not change, so its answer does not depend on the batch. PAD is never
    generated. If no hypothesis has finished, those cut at the limit are returned, and
    the length penalty applies to their scores, too.

    Args:
        step_function: `(ids, position, history, cache) -> (logits, cache)`; see
            `Transformer.decode_step`.
        cache: Initial cache: with slots for all positions under `static_shapes`, else
            without slots.
        max_lengths: int32 `[batch]`, limit of the tokens of each sentence, including
            EOS.
        max_length: Largest of `max_lengths`, which is the length of the output.
        options: Settings of the search.
        per_row: Tensors of the optional features.

    Returns:
        The hypotheses and their scores.
    """
    search = _Search(step_function, max_length, options)
    state = BeamState(
        *ops.while_loop(
            lambda *state: search.should_continue(BeamState(*state)),
            lambda *state: search.step(BeamState(*state)).as_tuple(),
            BeamState.initial(
                cache, max_lengths, max_length, options, per_row or {}
            ).as_tuple(),
        )
    )
    state = search.with_answers(state)
    return BeamSearchResult(ids=state.answer_ids, scores=state.answer_scores)


@dataclasses.dataclass(frozen=True)
class _Search:
    """The steps of the loop; for the fields, see `beam_search`."""

    step_function: StepFunction
    max_length: int | KerasTensor
    options: BeamSearchOptions

    def should_continue(self, state: BeamState) -> KerasTensor:
        return ops.logical_and(
            state.position < self.max_length, ops.logical_not(ops.all(state.done))
        )

    def step(self, state: BeamState) -> BeamState:
        history = self._history_with_new_slots(state)
        logits, cache = self._predict(state, history)
        found = best_extensions(state, logits, self.options)
        scores, parents, tokens = found.scores, found.parents, found.tokens
        ids = replace_column(
            take_beams(state.living_ids, parents), state.position, tokens
        )
        ends = ops.equal(tokens, EOS_ID)
        coverage = None
        if self.options.coverage_penalty:
            coverage = state.per_row["coverage"] + cache["attention"]
        coverage_term = self._coverage_penalty(coverage)
        if coverage_term is not None:
            coverage_term = take_beams(coverage_term, parents)
        finished_ids, finished_scores = self._finish(
            state, ids, scores, ends, coverage_term
        )
        # Keep the K best extensions that do not end.
        best, places = ops.top_k(
            ops.where(ends, MINUS_INFINITY, found.priorities), self.options.beam_size
        )
        living_log_probs = best  # without costs, the priorities are log-probabilities
        if self.options.word_cost:
            living = ops.where(ends, MINUS_INFINITY, scores)
            living_log_probs = take_beams(living, places)
        living_parents = take_beams(parents, places)
        # A sentence that is done keeps its living hypotheses; they may be its answer.
        new_state = dataclasses.replace(
            state,
            position=state.position + 1,
            living_ids=ops.where(
                state.done[:, None, None], state.living_ids, take_beams(ids, places)
            ),
            living_log_probs=ops.where(
                state.done[:, None], state.living_log_probs, living_log_probs
            ),
            history=take_beams(history, living_parents),
            finished_ids=finished_ids,
            finished_scores=finished_scores,
            cache=cache,
            per_row=with_coverage(state, coverage, living_parents),
        )
        new_state.done = self._done(new_state)
        if self.options.static_shapes:
            return new_state
        return self._drop_done(new_state)

    def _history_with_new_slots(self, state: BeamState) -> KerasTensor:
        """Return the history with the slots that this position writes."""
        beam_size = self.options.beam_size
        if self.options.static_shapes:
            own = state.position * beam_size + ops.arange(beam_size)
            is_own = ops.arange(ops.shape(state.history)[2])[None, :] == own[:, None]
            return ops.logical_or(state.history, is_own[None, :, :])
        rows = ops.shape(state.history)[0]
        own = ops.cast(ops.eye(beam_size), "bool")[None, :, :]
        return ops.concatenate([state.history, ops.repeat(own, rows, axis=0)], axis=2)

    def _predict(
        self, state: BeamState, history: KerasTensor
    ) -> tuple[KerasTensor, Any]:
        """Return logits `[rows * beam, vocab]` and the cache."""
        # PAD_ID before the first token
        column = ops.maximum(state.position - 1, 0)
        ids = ops.take(state.living_ids, column, axis=2)
        logits, cache = self.step_function(ids, state.position, history, state.cache)
        logits = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))
        return logits, cache

    def _coverage_penalty(self, coverage: KerasTensor | None) -> KerasTensor | None:
        if coverage is None:
            return None
        return coverage_penalty(coverage, self.options.coverage_penalty)

    def _finish(
        self,
        state: BeamState,
        ids: KerasTensor,
        scores: KerasTensor,
        ends: KerasTensor,
        coverage_term: KerasTensor | None,
    ) -> tuple[KerasTensor, KerasTensor]:
        """Merge the extensions that end with the finished hypotheses."""
        # Extensions of an empty place do not count.
        real = ops.logical_and(ends, scores > 0.5 * MINUS_INFINITY)
        allowed = ops.logical_and(real, ops.logical_not(state.done)[:, None])
        penalized = scores / _length_penalty(state.position + 1, self.options.alpha)
        if coverage_term is not None:
            penalized = penalized + coverage_term
        all_scores = ops.concatenate(
            [state.finished_scores, ops.where(allowed, penalized, MINUS_INFINITY)],
            axis=1,
        )
        allowed_ids = ops.where(allowed[:, :, None], ids, PAD_ID)
        all_ids = ops.concatenate([state.finished_ids, allowed_ids], axis=1)
        finished_scores, places = ops.top_k(all_scores, self.options.beam_size)
        return take_beams(all_ids, places), finished_scores

    def _done(self, state: BeamState) -> KerasTensor:
        best = state.living_log_probs[:, 0]
        if self.options.word_cost:
            # The first by priority may not have the highest log-probability.
            best = ops.max(state.living_log_probs, axis=1)
        reachable = best / _length_penalty(state.max_lengths, self.options.alpha)
        certain = state.finished_scores[:, self.options.num_hypotheses - 1] >= reachable
        at_limit = state.position >= state.max_lengths
        return ops.logical_or(state.done, ops.logical_or(certain, at_limit))

    def _drop_done(self, state: BeamState) -> BeamState:
        """Let sentences leave the search if enough of them are done."""
        num_rows = ops.shape(state.done)[0]
        num_done = ops.sum(ops.cast(state.done, "int32"))

        def narrowed() -> tuple[Any, ...]:
            (rows,) = ops.nonzero(ops.logical_not(state.done))
            return self.with_answers(state).take(rows).as_tuple()

        return BeamState(
            *ops.cond(
                num_done * ROWS_PER_DONE_ROW >= num_rows, narrowed, state.as_tuple
            )
        )

    def with_answers(self, state: BeamState) -> BeamState:
        """Write the hypotheses of all rows to the answers.

        They are the finished hypotheses of a sentence, or else the living ones.
        """
        any_finished = state.finished_scores[:, :1] > 0.5 * MINUS_INFINITY
        cut_scores = state.living_log_probs / _length_penalty(
            ops.minimum(state.position, state.max_lengths)[:, None], self.options.alpha
        )
        cut_ids = state.living_ids
        coverage_term = self._coverage_penalty(state.per_row.get("coverage"))
        if coverage_term is not None:
            cut_scores = cut_scores + coverage_term
        if coverage_term is not None or self.options.word_cost:
            cut_scores, order = ops.top_k(cut_scores, self.options.beam_size)
            cut_ids = take_beams(cut_ids, order)
        ids = ops.where(any_finished[:, :, None], state.finished_ids, cut_ids)
        scores = ops.where(any_finished, state.finished_scores, cut_scores)
        if self._may_run_out(state):
            is_real = scores > 0.5 * MINUS_INFINITY
            ids = ops.where(is_real[:, :, None], ids, PAD_ID)
        where = state.sentences[:, None]
        return dataclasses.replace(
            state,
            answer_ids=ops.scatter_update(state.answer_ids, where, ids),
            answer_scores=ops.scatter_update(state.answer_scores, where, scores),
        )

    def _may_run_out(self, state: BeamState) -> bool:
        """Return whether there may be fewer than K hypotheses."""
        return self.options.constraints is not None or "prefixes" in state.per_row


def _length_penalty(length: KerasTensor, alpha: float) -> KerasTensor:
    """Return the length penalty of integer lengths, float32."""
    return length_penalty(ops.cast(length, "float32"), alpha)
