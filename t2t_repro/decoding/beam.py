"""Beam search in `keras.ops`: one loop, which never gathers a cache.

Paper section 6.1: beam 4, length penalty alpha 0.6, at most source length + 50
tokens, "terminate early when possible". tensor2tensor: `utils/beam_search.py`.
With beam_size 1 it is greedy search: the best token at every step, until the first EOS.

An option of `decoding/next_tokens.py` that is off adds no operation to the graph.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.hypothesis import length_penalty
from t2t_repro.decoding.next_tokens import (
    MINUS_INFINITY,
    Constraints,
    RowTensors,
    Sampling,
    StepFunction,
    coverage_penalty,
    expected_costs,
    forbidden_tokens,
    sample,
    top_log_probs,
)

# Finished sentences leave the batch once they are at least one in this many rows.
# Gathering the other rows takes a small part of the time of a step.
ROWS_PER_DONE_ROW = 8


@dataclasses.dataclass(frozen=True)
class BeamSearchOptions:
    """Settings of the search.

    Attributes:
        beam_size: Number of hypotheses kept per sentence (K).
        alpha: Exponent of the length penalty ((5 + length) / 6)^alpha; 0 means none.
        num_hypotheses: Number of best finished hypotheses that must be certain before
            the search of a sentence ends, from 1 to `beam_size`.
        static_shapes: Whether every tensor keeps its shape from step to step, which XLA
            and JAX need: the cache has slots for all positions from the start, and
            sentences that are done stay in the batch. Otherwise the step function
            appends to the cache, and sentences that are done leave the batch. That is
            faster, because most sentences end long before their limit.
        constraints: Tokens that are forbidden, which changes no log-probability.
        sampling: Distribution to draw tokens from, which needs `beam_size` 1; None to
            take the best ones.
        coverage_penalty: Factor of the coverage penalty (beta); 0 means none. Otherwise
            the step function must return an `AttendingCache`.
        word_cost: Expected cost of a word without a leaf in nats, for a search inside a
            grammar; 0 means none. See `expected_costs`.
    """

    beam_size: int
    alpha: float
    num_hypotheses: int = 1
    static_shapes: bool = True
    constraints: Constraints | None = None
    sampling: Sampling | None = None
    coverage_penalty: float = 0.0
    word_cost: float = 0.0


@dataclasses.dataclass(frozen=True)
class BeamSearchResult:
    """Hypotheses of every sentence, best first.

    Attributes:
        ids: int32 `[batch, beam, max_length]`, including EOS, padded with PAD_ID.
        scores: float32 `[batch, beam]`: log-probability over length penalty, plus
            the coverage penalty if there is one.
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
    done does not change, so its answer does not depend on the batch; PAD is never
    generated; if no hypothesis has finished, those cut at the limit are returned, with
    the length penalty applied to their scores too.

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


class _Search:
    """The steps of the loop; for the arguments, see `beam_search`."""

    def __init__(
        self,
        step_function: StepFunction,
        max_length: int | KerasTensor,
        options: BeamSearchOptions,
    ) -> None:
        self.step_function = step_function
        self.options = options
        self.static_shapes = options.static_shapes
        self.max_length = max_length
        self.beam_size = options.beam_size
        self.alpha = options.alpha
        self.num_hypotheses = options.num_hypotheses

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
        coverage = self._coverage(state, cache)
        penalty = self._coverage_penalty(coverage)
        if penalty is not None:
            penalty = take_beams(penalty, parents)
        finished_ids, finished_scores = self._finish(state, ids, scores, ends, penalty)
        # Keep the K best extensions that do not end.
        living_log_probs, places = ops.top_k(
            ops.where(ends, MINUS_INFINITY, found.ranks), self.beam_size
        )
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
        return new_state if self.static_shapes else self._without_done(new_state)

    def _history_with_new_slots(self, state: BeamState) -> KerasTensor:
        """Return the history with the slots that this position writes."""
        if self.static_shapes:
            own = state.position * self.beam_size + ops.arange(self.beam_size)
            is_own = ops.arange(ops.shape(state.history)[2])[None, :] == own[:, None]
            return ops.logical_or(state.history, is_own[None, :, :])
        rows = ops.shape(state.history)[0]
        own = ops.cast(ops.eye(self.beam_size), "bool")[None, :, :]
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

    def _coverage(self, state: BeamState, cache: Any) -> KerasTensor | None:
        """Return the coverage of the living hypotheses after this step."""
        if not self.options.coverage_penalty:
            return None
        return state.per_row["coverage"] + cache["attention"]

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
        penalty: KerasTensor | None,
    ) -> tuple[KerasTensor, KerasTensor]:
        """Merge the extensions that end with the finished hypotheses."""
        # Extensions of an empty place do not count.
        real = ops.logical_and(ends, scores > 0.5 * MINUS_INFINITY)
        allowed = ops.logical_and(real, ops.logical_not(state.done)[:, None])
        penalized = scores / _penalty(state.position + 1, self.alpha)
        if penalty is not None:
            penalized = penalized + penalty
        all_scores = ops.concatenate(
            [state.finished_scores, ops.where(allowed, penalized, MINUS_INFINITY)],
            axis=1,
        )
        allowed_ids = ops.where(allowed[:, :, None], ids, PAD_ID)
        all_ids = ops.concatenate([state.finished_ids, allowed_ids], axis=1)
        finished_scores, places = ops.top_k(all_scores, self.beam_size)
        return take_beams(all_ids, places), finished_scores

    def _done(self, state: BeamState) -> KerasTensor:
        best = state.living_log_probs[:, 0]
        if self.options.word_cost:
            # The hypothesis of the best rank may not have the highest log-probability.
            best = ops.max(state.living_log_probs, axis=1)
        reachable = best / _penalty(state.max_lengths, self.alpha)
        certain = state.finished_scores[:, self.num_hypotheses - 1] >= reachable
        at_limit = state.position >= state.max_lengths
        return ops.logical_or(state.done, ops.logical_or(certain, at_limit))

    def _without_done(self, state: BeamState) -> BeamState:
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
        cut_scores = state.living_log_probs / _penalty(
            ops.minimum(state.position, state.max_lengths)[:, None], self.alpha
        )
        cut_ids = state.living_ids
        penalty = self._coverage_penalty(state.per_row.get("coverage"))
        if penalty is not None:
            cut_scores = cut_scores + penalty
        if penalty is not None or self.options.word_cost:
            cut_scores, order = ops.top_k(cut_scores, self.beam_size)
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


def _penalty(length: KerasTensor, alpha: float) -> KerasTensor:
    """Return the length penalty of integer lengths, float32."""
    return length_penalty(ops.cast(length, "float32"), alpha)


@dataclasses.dataclass
class BeamState:
    """The loop variables of the search.

    "Living" hypotheses can be extended; "finished" ones end in EOS. Both are sorted,
    best first, the living ones by their rank (see `Extensions`). Empty places have a
    score of about `MINUS_INFINITY`. The rows of a state are the sentences that are
    still in the search.

    Attributes:
        position: int32 scalar, number of tokens of the living hypotheses.
        sentences: int32 `[rows]`, the number of each row's sentence in the batch.
        max_lengths: int32 `[rows]`, limit of the tokens of each sentence.
        living_ids: int32 `[rows, beam, max_length]`, padded with PAD_ID.
        living_log_probs: float32 `[rows, beam]`, sums of log-probabilities.
        history: bool `[rows, beam, slots]`, the cache slots on the path of each
            living hypothesis. Slot p * beam + k was written at position p by the
            hypothesis that was then in place k.
        finished_ids: int32 `[rows, beam, max_length]`.
        finished_scores: float32 `[rows, beam]`, with penalties.
        done: bool `[rows]`, whether the answer for a sentence can no longer change.
        cache: Nested tensors, `[rows, ...]`, returned by the step function.
        per_row: Tensors of the features that are on.
        answer_ids: int32 `[batch, beam, max_length]`, hypotheses of the sentences that
            have left the search.
        answer_scores: float32 `[batch, beam]`.
    """

    position: KerasTensor
    sentences: KerasTensor
    max_lengths: KerasTensor
    living_ids: KerasTensor
    living_log_probs: KerasTensor
    history: KerasTensor
    finished_ids: KerasTensor
    finished_scores: KerasTensor
    done: KerasTensor
    cache: Any
    per_row: RowTensors
    answer_ids: KerasTensor
    answer_scores: KerasTensor

    @classmethod
    def initial(
        cls,
        cache: Any,
        max_lengths: KerasTensor,
        max_length: int | KerasTensor,
        options: BeamSearchOptions,
        per_row: RowTensors,
    ) -> Self:
        """Return the state before the first step; for arguments, see `beam_search`."""
        batch, beam = ops.shape(max_lengths)[0], options.beam_size
        no_ids = ops.full((batch, beam, max_length), PAD_ID, dtype="int32")
        no_scores = ops.full((batch, beam), MINUS_INFINITY, dtype="float32")
        # One living hypothesis, the empty one. K equal ones would stay equal.
        first = ops.arange(beam) == 0
        # Not the number 0: in a graph, the number of slots must be unknown.
        slots = max_length * beam if options.static_shapes else 0 * batch
        return cls(
            position=ops.zeros((), dtype="int32"),
            sentences=ops.arange(batch, dtype="int32"),
            max_lengths=max_lengths,
            living_ids=no_ids,
            living_log_probs=ops.where(first[None, :], 0.0, no_scores),
            history=ops.zeros((batch, beam, slots), dtype="bool"),
            finished_ids=no_ids,
            finished_scores=no_scores,
            done=ops.zeros((batch,), dtype="bool"),
            cache=cache,
            per_row=per_row,
            answer_ids=no_ids,
            answer_scores=no_scores,
        )

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the fields in order, as loop variables."""
        return tuple(getattr(self, f.name) for f in dataclasses.fields(self))

    def take(self, rows: KerasTensor) -> BeamState:
        """Return the state of some rows; the answers stay those of the batch."""
        whole = ("position", "answer_ids", "answer_scores")
        names = [f.name for f in dataclasses.fields(self) if f.name not in whole]
        taken = keras.tree.map_structure(
            lambda x: ops.take(x, rows, axis=0), {n: getattr(self, n) for n in names}
        )
        return dataclasses.replace(self, **taken)


def with_coverage(
    state: BeamState, coverage: KerasTensor | None, parents: KerasTensor
) -> RowTensors:
    """Return the tensors of the features with the coverage of the new hypotheses.

    Args:
        state: State before the step.
        coverage: Coverage of the living hypotheses after the step, float32
            `[rows, beam, source_length]`, or None without a coverage penalty.
        parents: Place of each new hypothesis's parent, int32 `[rows, beam]`.
    """
    if coverage is None:
        return state.per_row
    before = state.per_row["coverage"]
    after = take_beams(coverage, parents)
    return {
        **state.per_row,
        "coverage": ops.where(state.done[:, None, None], before, after),
    }


@dataclasses.dataclass(frozen=True)
class Extensions:
    """Living hypotheses with one more token; all tensors are `[rows, n]`.

    Attributes:
        ranks: Log-probabilities minus `expected_costs`, highest first,
            float32. Without a `word_cost`, they are the scores.
        scores: Log-probabilities, float32.
        parents: Places of the living hypotheses, int32.
        tokens: Their new tokens, int32.
    """

    ranks: KerasTensor
    scores: KerasTensor
    parents: KerasTensor
    tokens: KerasTensor


def best_extensions(
    state: BeamState, logits: KerasTensor, options: BeamSearchOptions
) -> Extensions:
    """Return the 2K extensions of the best rank, one for K = 1, or a random one.

    Args:
        state: State before the step.
        logits: Logits of the next tokens, float32 `[rows * beam, vocab_size]`.
        options: Settings of the search.
    """
    forbidden = forbidden_tokens(
        options.constraints,
        state.living_ids,
        state.position,
        logits.shape[-1],
        state.max_lengths,
        state.per_row.get("prefixes"),
        state.per_row.get("word_kinds"),
    )
    if options.sampling is not None:
        return _drawn_extension(state, logits, options.sampling, forbidden)
    count = 2 * options.beam_size if options.beam_size > 1 else 1
    if options.word_cost:
        return _ranked_by_cost(state, logits, options, forbidden, count)
    log_probs, tokens = top_log_probs(logits, count, forbidden)
    totals = _totals(state.living_log_probs, log_probs)
    scores, places = ops.top_k(totals, count)
    return Extensions(scores, scores, *_origins(places, tokens, options.beam_size))


def _ranked_by_cost(
    state: BeamState,
    logits: KerasTensor,
    options: BeamSearchOptions,
    forbidden: KerasTensor | None,
    count: int,
) -> Extensions:
    """Return the best extensions where words without a leaf have a cost."""
    if options.constraints is None or options.constraints.grammar is None:
        raise ValueError(
            "`word_cost` needs constraints with a grammar. "
            f"Received: word_cost={options.word_cost}, "
            f"constraints={options.constraints}"
        )
    cost, before = options.word_cost, state.living_log_probs
    written = options.constraints.grammar.words_written(logits.shape[-1])
    bonus = cost * written
    costs = expected_costs(written, cost, state.living_ids, state.per_row["word_kinds"])
    log_probs, tokens = top_log_probs(logits, count, forbidden, bonus)
    gains = log_probs + ops.take(bonus, tokens)
    ranks, places = ops.top_k(_totals(before - costs, gains), count)
    # The ranks plus the costs would be less precise.
    scores = take_beams(_totals(before, log_probs), places)
    origins = _origins(places, tokens, options.beam_size)
    return Extensions(ranks, scores, *origins)


def _drawn_extension(
    state: BeamState,
    logits: KerasTensor,
    sampling: Sampling,
    forbidden: KerasTensor | None,
) -> Extensions:
    """Return a random extension, `[rows, 1]`."""
    uniform = ops.take(state.per_row["uniform"], state.position, axis=1)
    tokens, log_probs = sample(logits, uniform, sampling, forbidden)
    tokens = tokens[:, None]
    scores = state.living_log_probs + log_probs[:, None]
    return Extensions(scores, scores, ops.zeros_like(tokens), tokens)


def _totals(before: KerasTensor, gains: KerasTensor) -> KerasTensor:
    """Return the sums of all extensions of a row, `[rows, beam * n]`.

    Args:
        before: Sums of the hypotheses, float32 `[rows, beam]`.
        gains: Amounts that the tokens add, float32 `[rows * beam, n]`.
    """
    beam, n = before.shape[1], gains.shape[-1]
    totals = before[:, :, None] + ops.reshape(gains, (-1, beam, n))
    return ops.reshape(totals, (-1, beam * n))


def _origins(
    places: KerasTensor, tokens: KerasTensor, beam_size: int
) -> tuple[KerasTensor, KerasTensor]:
    """Return the parents and the tokens of extensions, int32 `[rows, count]`.

    Args:
        places: Columns of `_totals`, int32 `[rows, count]`.
        tokens: Candidates of each hypothesis, int32 `[rows * beam, n]`.
        beam_size: Number of hypotheses of a row.
    """
    n = tokens.shape[-1]
    places = ops.cast(places, "int32")
    each = ops.reshape(tokens, (-1, beam_size * n))
    return places // n, take_beams(each, places)


def take_beams(x: KerasTensor, places: KerasTensor) -> KerasTensor:
    """Gather hypotheses: `[rows, n, ...]` at `[rows, m]` gives `[rows, m, ...]`."""
    rows, n = ops.shape(x)[0], x.shape[1]
    # Whole rows of a flat tensor: `take_along_axis` would gather single numbers.
    first = ops.arange(rows, dtype="int32")[:, None] * n
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))
    return ops.take(flat, first + ops.cast(places, "int32"), axis=0)


def replace_column(
    ids: KerasTensor, column: KerasTensor, tokens: KerasTensor
) -> KerasTensor:
    """Write tokens `[batch, n]` at a position of ids `[batch, n, max_length]`."""
    here = ops.arange(ops.shape(ids)[2]) == column
    return ops.where(here[None, None, :], tokens[:, :, None], ids)
