"""Searches over random tables: the one under test, by enumeration, and with lists."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from keras import ops

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.beam import beam_search
from t2t_repro.decoding.beam_state import BeamSearchOptions

Hypotheses = list[tuple[float, list[int]]]  # score and tokens, best first
Rule = Callable[[list[int], int], bool]  # whether a token may follow others


def no_rule(tokens: list[int], token: int) -> bool:
    return True


@dataclasses.dataclass(frozen=True)
class TableModel:
    """A model whose next token depends on all earlier tokens, by a table.

    The prefix t_1 .. t_n is row sum_p t_p V^(p-1) of its sentence's table.

    Attributes:
        logits: float32 `[batch, V^(max_length - 1), V]`.
        max_length: Longest hypothesis.
        attention: Attention to the source after each prefix, float32
            `[batch, V^(max_length - 1), source_length]`; None for a model without.
    """

    logits: np.ndarray
    max_length: int
    attention: np.ndarray | None = None

    @classmethod
    def random(cls, seed: int, batch: int, vocab_size: int, max_length: int):
        shape = (batch, vocab_size ** (max_length - 1), vocab_size)
        logits = 2.0 * np.random.default_rng(seed).normal(size=shape)
        return cls(logits.astype("float32"), max_length)

    @property
    def vocab_size(self) -> int:
        return self.logits.shape[-1]

    def row(self, prefix: list[int]) -> int:
        return sum(t * self.vocab_size**p for p, t in enumerate(prefix))

    def log_probs(self, sentence: int, prefix: list[int]) -> np.ndarray:
        logits = self.logits[sentence, self.row(prefix)].astype("float64")
        return logits - np.log(np.exp(logits).sum())

    def only(self, sentence: int) -> TableModel:
        return TableModel(self.logits[sentence : sentence + 1], self.max_length)

    def cover(self, sentence: int, tokens: list[int], beta: float) -> float:
        if self.attention is None:
            return 0.0
        rows = [self.row(tokens[:n]) for n in range(len(tokens))]
        received = self.attention[sentence, rows].astype("float64").sum(axis=0)
        return beta * float(np.log(np.minimum(received, 1.0)).sum())

    def search(
        self,
        limits: list[int],
        options: BeamSearchOptions,
        *,
        in_graph: bool = False,
        jit_compile: bool = False,
        per_row: dict[str, np.ndarray] | None = None,
    ) -> list[Hypotheses]:
        """Run the beam search under test, and leave out empty places.

        It runs one operation at a time, which is much faster than tracing a graph.
        """
        tensors = {name: tf.constant(x) for name, x in (per_row or {}).items()}
        if self.attention is not None:
            shape = (len(limits), options.beam_size, self.attention.shape[-1])
            tensors["coverage"] = tf.zeros(shape)
            tensors["table"] = tf.constant(self.attention)
        search = TableSearch(self.max_length, self.vocab_size, options)
        run = search.run
        if in_graph:
            kinds = ((name, x.ndim, x.dtype) for name, x in tensors.items())
            run = graph_of(search, tuple(kinds))
        elif jit_compile:
            run = tf.function(run, jit_compile=True)
        found = run(tf.constant(limits), tf.constant(self.logits), tensors)
        ids, scores = (x.numpy() for x in found)
        return [
            [
                (float(score), [int(token) for token in row if token != PAD_ID])
                for score, row in zip(*sentence, strict=True)
                if row[0] != PAD_ID
            ]
            for sentence in zip(scores, ids, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class TableSearch:
    """The search under test, over tables of one size."""

    max_length: int
    vocab_size: int
    options: BeamSearchOptions

    def run(
        self, limits: tf.Tensor, logits: tf.Tensor, tensors: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        options, batch = self.options, ops.shape(limits)[0]
        longest, slots = tf.reduce_max(limits), 0 * batch
        if options.static_shapes:
            longest, slots = self.max_length, self.max_length * options.beam_size
        cache = {"ids": ops.zeros((batch, slots), dtype="int32"), "logits": logits}
        per_row = dict(tensors)
        if "table" in per_row:
            cache["table"] = per_row.pop("table")
            cache["attention"] = per_row["coverage"]
        result = beam_search(self._step, cache, limits, longest, options, per_row)
        return result.ids, result.scores

    def _step(self, ids, position, history, cache):
        beam_size = self.options.beam_size
        # Weight of the slots of position p in a row's number; position 0 sees PAD.
        powers = np.arange(self.max_length * beam_size) // beam_size - 1
        weights = np.where(powers < 0, 0, self.vocab_size ** np.maximum(powers, 0))
        if self.options.static_shapes:
            written = ops.slice_update(cache["ids"], (0, position * beam_size), ids)
        else:
            written = ops.concatenate([cache["ids"], ids], axis=1)
        on_path = ops.cast(history, "int32") * written[:, None, :]
        known = ops.cast(weights, "int32")[: ops.shape(written)[1]]
        rows = ops.sum(on_path * known, axis=-1)
        logits = ops.take_along_axis(cache["logits"], rows[:, :, None], axis=1)
        cache = {**cache, "ids": written}
        if "table" in cache:
            cache["attention"] = ops.take_along_axis(
                cache["table"], rows[:, :, None], axis=1
            )
        return logits, cache


@functools.lru_cache(maxsize=4)
def graph_of(
    search: TableSearch, kinds: tuple[tuple[str, int, tf.DType], ...]
) -> Callable:
    """Return a search as a graph of unknown shapes."""
    signature = [
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None, None, search.vocab_size], tf.float32),
        {name: tf.TensorSpec([None] * rank, dtype) for name, rank, dtype in kinds},
    ]
    return tf.function(search.run, input_signature=signature)


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def all_hypotheses(
    model: TableModel,
    sentence: int,
    limit: int,
    alpha: float,
    rule: Rule = no_rule,
    beta: float = 0.0,
) -> Hypotheses:
    """Return every sequence that ends in EOS within the limit, with its score."""
    found = []
    others = [t for t in range(model.vocab_size) if t not in (PAD_ID, EOS_ID)]
    for length in range(1, limit + 1):
        for body in itertools.product(others, repeat=length - 1):
            tokens = [*body, EOS_ID]
            if not all(rule(tokens[:n], token) for n, token in enumerate(tokens)):
                continue
            log_prob = sum(
                model.log_probs(sentence, tokens[:n])[token]
                for n, token in enumerate(tokens)
            )
            cover = model.cover(sentence, tokens, beta)
            found.append((log_prob / penalty(length, alpha) + cover, tokens))
    return sorted(found, reverse=True)


def search_with_lists(
    model: TableModel,
    sentence: int,
    limit: int,
    alpha: float,
    beam_size: int,
    rule: Rule = no_rule,
    beta: float = 0.0,
    cost: Callable[[list[int]], float] = lambda tokens: 0.0,
) -> Hypotheses:
    """Run a beam search to the limit, without stopping early.

    A hypothesis ranks by its log-probability minus its expected `cost`.
    """
    living, finished = [(0.0, [])], []
    for length in range(1, limit + 1):
        extensions = sorted(
            (
                (log_prob + model.log_probs(sentence, tokens)[t], [*tokens, t])
                for log_prob, tokens in living
                for t in range(model.vocab_size)
                if t != PAD_ID and rule(tokens, t)
            ),
            key=lambda extension: extension[0] - cost(extension[1]),
            reverse=True,
        )[: 2 * beam_size]
        ends = [
            (s / penalty(length, alpha) + model.cover(sentence, t, beta), t)
            for s, t in extensions
            if t[-1] == EOS_ID
        ]
        finished = sorted(finished + ends, reverse=True)[:beam_size]
        living = [(s, t) for s, t in extensions if t[-1] != EOS_ID][:beam_size]
    cut = [
        (s / penalty(limit, alpha) + model.cover(sentence, t, beta), t)
        for s, t in living
    ]
    return finished or sorted(cut, reverse=True)


def greedy(
    model: TableModel, sentence: int, limit: int, rule: Rule = no_rule
) -> list[int]:
    """Return the most probable token that may follow, again and again."""
    tokens: list[int] = []
    while len(tokens) < limit and EOS_ID not in tokens:
        log_probs = model.log_probs(sentence, tokens)
        allowed = [t for t in range(PAD_ID + 1, model.vocab_size) if rule(tokens, t)]
        tokens.append(max(allowed, key=lambda t: log_probs[t]))
    return tokens


def assert_same(found: Hypotheses, expected: Hypotheses) -> None:
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    np.testing.assert_allclose(
        [score for score, _ in found], [score for score, _ in expected], atol=1e-5
    )
