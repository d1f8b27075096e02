"""Settings, loop variables and results of a search."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.row_tensors import RowTensors
from t2t_repro.decoding.sampling import Sampling
from t2t_repro.decoding.vocabulary import MINUS_INFINITY

# (ids [batch, beam], position, history [batch, beam, slots], cache)
#   -> (logits [batch, beam, vocab], cache)
StepFunction = Callable[
    [KerasTensor, KerasTensor, KerasTensor, Any], tuple[KerasTensor, Any]
]


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
            grammar; 0 means none. See `decoding/grammar_cost.py`.
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
class BeamSearchResult:
    """Hypotheses of every sentence, best first.

    Attributes:
        ids: int32 `[batch, beam, max_length]`, including EOS, padded with PAD_ID.
        scores: float32 `[batch, beam]`: log-probability over length penalty, plus
            the coverage penalty if there is one.
    """

    ids: KerasTensor
    scores: KerasTensor


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
