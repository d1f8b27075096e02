"""The state of a beam search, and the extensions of its hypotheses by a token."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Self, TypedDict

import keras
import numpy as np
from keras import KerasTensor, ops

from t2t_repro.constants import NO_WORD, PAD_ID
from t2t_repro.decoding.next_tokens import (
    MINUS_INFINITY,
    Constraints,
    Sampling,
    forbidden_tokens,
    sample,
    top_log_probs,
)

# (ids [batch, beam], position, history [batch, beam, slots], cache)
#   -> (logits [batch, beam, vocab], cache)
StepFunction = Callable[
    [KerasTensor, KerasTensor, KerasTensor, Any], tuple[KerasTensor, Any]
]


class RowTensors(TypedDict, total=False):
    """Tensors of optional features: a row leaves the search with its sentence.

    Attributes:
        prefixes: Tokens that the hypotheses of each sentence must begin with, int32
            `[rows, n]`, padded with PAD_ID. The last column has only padding.
        uniform: Random numbers of each position, needed for sampling, float64
            `[rows, max_length]`, at least 0 and less than 1.
        coverage: Attention that each source token has received, needed for the
            coverage penalty, float32 `[rows, beam, source_length]`; 1 at padding. The
            search updates it.
        word_kinds: See `TargetGrammar.outside`; needed for a grammar.
    """

    prefixes: KerasTensor
    uniform: KerasTensor
    coverage: KerasTensor
    word_kinds: KerasTensor


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


@dataclasses.dataclass(frozen=True)
class Extensions:
    """Living hypotheses with one more token; all tensors are `[rows, n]`.

    Attributes:
        priorities: Log-probabilities minus `expected_costs`, highest first,
            float32. Without a `word_cost`, they are the scores.
        scores: Log-probabilities, float32.
        parents: Places of the living hypotheses, int32.
        tokens: Their new tokens, int32.
    """

    priorities: KerasTensor
    scores: KerasTensor
    parents: KerasTensor
    tokens: KerasTensor


def best_extensions(
    state: BeamState, logits: KerasTensor, options: BeamSearchOptions
) -> Extensions:
    """Return the 2K extensions of highest priority (one for K = 1), or a random one.

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
        return _draw_extension(state, logits, options.sampling, forbidden)
    count = 2 * options.beam_size if options.beam_size > 1 else 1
    if options.word_cost:
        return _rank_by_cost(state, logits, options, forbidden, count)
    log_probs, tokens = top_log_probs(logits, count, forbidden)
    totals = _totals(state.living_log_probs, log_probs)
    scores, places = ops.top_k(totals, count)
    return Extensions(scores, scores, *_origins(places, tokens, options.beam_size))


def _rank_by_cost(
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
    priorities, places = ops.top_k(_totals(before - costs, gains), count)
    # The priorities plus the costs would be less precise.
    scores = take_beams(_totals(before, log_probs), places)
    origins = _origins(places, tokens, options.beam_size)
    return Extensions(priorities, scores, *origins)


def _draw_extension(
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


def expected_costs(
    written: np.ndarray, word_cost: float, ids: KerasTensor, word_kinds: KerasTensor
) -> KerasTensor:
    """Return the expected costs of the words that hypotheses have not written yet.

    All hypotheses of a beam have the same number of tokens, but not of words. A
    probable bracket costs less than an improbable leaf, so a beam that compares
    log-probabilities alone fills with hypotheses that put off the next leaf. Stern et
    al. 2017 (arXiv:1707.08976) describe this, and compare hypotheses with the same
    number of words instead. Here, as in the future cost of a phrase-based decoder
    (Koehn et al. 2003), a hypothesis ranks by

        log P(tokens) - word_cost * (words not written)

    At the end, all words are written, so the scores are the model's.

    Args:
        written: See `TargetGrammar.words_written`.
        word_cost: Expected cost of a word, in nats.
        ids: Hypotheses, int32 `[rows, beam, max_length]`, padded with PAD_ID.
        word_kinds: See `RowTensors`.

    Returns:
        float32 `[rows, beam]`, in nats; negative only after a forced prefix with too
        many words.
    """
    num_words = ops.sum(ops.cast(word_kinds != NO_WORD, "float32"), axis=1)
    # Sums of whole numbers are exact.
    num_written = ops.sum(ops.take(written, ids, axis=0), axis=-1)
    return word_cost * (num_words[:, None] - num_written)


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
