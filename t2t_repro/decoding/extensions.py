"""The best extensions of the living hypotheses by one token."""

from __future__ import annotations

import dataclasses

from keras import KerasTensor, ops

from t2t_repro.decoding.beam_state import BeamSearchOptions, BeamState, take_beams
from t2t_repro.decoding.constraints import forbidden_tokens
from t2t_repro.decoding.grammar_cost import costs_left, leaf_bonus
from t2t_repro.decoding.sampling import Sampling, sample
from t2t_repro.decoding.vocabulary import top_log_probs


@dataclasses.dataclass(frozen=True)
class Extensions:
    """Living hypotheses with one more token; all tensors are `[rows, n]`.

    Attributes:
        ranks: Log-probabilities minus expected costs (`decoding/grammar_cost.py`),
            highest first, float32. Without a `word_cost`, they are the scores.
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
    bonus = leaf_bonus(options.constraints.grammar, cost, logits.shape[-1])
    costs = costs_left(bonus, cost, state.living_ids, state.per_row["word_kinds"])
    log_probs, tokens = top_log_probs(logits, count, forbidden, bonus)
    gains = log_probs + ops.take(bonus, tokens)
    ranks, places = ops.top_k(_totals(before - costs, gains), count)
    # The ranks plus the costs would be less precise.
    scores = take_beams(_totals(before, log_probs), places)
    origins = _origins(places, tokens, options.beam_size)
    return Extensions(ranks, scores, *origins)


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
