"""Log-probabilities of given pairs of source and target.

tensor2tensor: `t2t-decoder --score_file` (`utils/decoding.py`), which prints the loss
per token of a target; here it is the log-probability, of all and of each token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import batches_by_length, padded
from t2t_repro.data.pipeline import BATCH_SIGNATURE, Batch
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.hypothesis import length_penalty
from t2t_repro.decoding.sentences import CHUNK_SIZE, longest_piece
from t2t_repro.errors import UserError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import Tokenizer
from t2t_repro.text.lines import check_same_length, is_blank, listed
from t2t_repro.text.tokenizer import check_in_vocabulary
from t2t_repro.training.losses import token_losses

Pair = tuple[list[int], list[int]]


@dataclasses.dataclass(frozen=True)
class PairScore:
    """Log-probability of a target given its source.

    Attributes:
        log_prob: Sum of `token_log_probs`.
        score: `log_prob` divided by the length penalty of the search, so that it is
            comparable with the score of a `Hypothesis`.
        tokens: Vocabulary entries of the target, the last one being the end of
            sentence. Empty for an empty pair.
        token_log_probs: Log-probability of each token given the source and the tokens
            before it, in nats.
    """

    log_prob: float
    score: float
    tokens: tuple[str, ...]
    token_log_probs: tuple[float, ...]


class PairScorer:
    """Scorer of pairs with a model in memory, batched by tokens.

    Args:
        model: A `Transformer` or `Ensemble`.
        tokenizers: Tokenizers of the inputs and of the targets.
        problem: Problem that defines the forms of sources and targets.
        hparams: `alpha`, `batch_size`, and `extra_length`.
        max_length: Longest source that the model reads, in tokens with EOS. A target
            may be longer by `extra_length`, like a translation.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizers: tuple[Tokenizer, Tokenizer],
        problem: Problem,
        hparams: DecodeHParams,
        max_length: int,
    ) -> None:
        self._source_tokenizer, self._target_tokenizer = tokenizers
        self._problem = problem
        self._alpha = hparams.alpha
        self._longest_source = longest_piece(max_length) + 1
        self._longest_target = self._longest_source + hparams.extra_length
        self._batch_size = hparams.batch_size

        # AutoGraph would take seconds, and nothing in a model needs it.
        @tf.function(input_signature=[BATCH_SIGNATURE], autograph=False)
        def losses(batch: Batch) -> tf.Tensor:
            return token_losses(batch[TARGETS], model(batch, training=False), 0.0)[1]

        self._losses = losses

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        advance: Callable[[int], object] = lambda count: None,
    ) -> Iterator[PairScore]:
        """Score targets given their sources.

        Args:
            sources: Sources, as for `System.translate`.
            targets: One target per source, in the form of the problem's targets.
            advance: Called with the number of pairs completed since the last call.

        Returns:
            The scores in the order of the pairs, computed chunk by chunk. An empty pair
            has no tokens and a log-probability of 0.

        Raises:
            UserError: If the numbers of sources and targets differ, or a text is empty,
                too long or not in the vocabulary; the message names the line. All pairs
                are checked before the first one is scored.
        """
        return self._chunks(self.encode(sources, targets), advance)

    def encode(self, sources: Iterable[str], targets: Iterable[str]) -> list[Pair]:
        """Return the ids of pairs, each with EOS; an empty pair has none.

        Raises:
            UserError: See `score`.
        """
        sources, targets = listed(sources, "sources"), listed(targets, "targets")
        check_same_length(sources, targets, "the sources", "the targets")
        pairs = []
        for line, (source, target) in enumerate(
            zip(sources, targets, strict=True), start=1
        ):
            try:
                pairs.append(self._encode_pair(source, target))
            except UserError as error:
                raise UserError(f"line {line}: {error}") from error
        return pairs

    def _encode_pair(self, source: str, target: str) -> Pair:
        source_ids = self._source_tokenizer.encode(
            self._problem.normalize_source(source)
        )
        if not source_ids and is_blank(target):
            return [], []
        written = self._problem.encode_target(target)
        target_ids = self._target_tokenizer.encode(written)
        check_in_vocabulary(self._target_tokenizer, written, target_ids)
        return (
            _append_eos(source_ids, self._longest_source, "source"),
            _append_eos(target_ids, self._longest_target, "target"),
        )

    def _chunks(
        self, pairs: list[Pair], advance: Callable[[int], object]
    ) -> Iterator[PairScore]:
        for start in range(0, len(pairs), CHUNK_SIZE):
            chunk = pairs[start : start + CHUNK_SIZE]
            log_probs = self.token_log_probs(chunk, advance)
            for (_, target_ids), values in zip(chunk, log_probs, strict=True):
                yield self._pair_score(target_ids, values)

    def token_log_probs(
        self,
        pairs: Sequence[Pair],
        advance: Callable[[int], object] = lambda count: None,
    ) -> list[np.ndarray]:
        """Return the log-probability of every target token, all batched together.

        Args:
            pairs: Ids of source and target, with EOS.
            advance: See `score`.

        Returns:
            For each pair, float32 `[target_length]`, in nats.
        """
        found = [np.zeros(0, np.float32) for _ in pairs]
        full = [number for number, (_, target) in enumerate(pairs) if target]
        advance(len(pairs) - len(full))
        for numbers, batch in self._batches(pairs, full):
            losses = self._losses(batch).numpy()
            for row, number in enumerate(numbers):
                found[number] = -losses[row, : len(pairs[number][1])]
            advance(len(numbers))
        return found

    def _batches(
        self, pairs: Sequence[Pair], numbers: list[int]
    ) -> Iterator[tuple[list[int], Batch]]:
        """Yield the numbers of pairs and their padded ids, longest first."""
        lengths = [max(map(len, pairs[number])) for number in numbers]
        for indices in batches_by_length(lengths, self._batch_size):
            chosen = [numbers[index] for index in indices]
            longest = lengths[indices[0]]
            yield chosen, _as_batch([pairs[number] for number in chosen], longest)

    def _pair_score(self, target_ids: list[int], log_probs: np.ndarray) -> PairScore:
        log_prob = float(np.sum(log_probs, dtype=np.float64))
        return PairScore(
            log_prob=log_prob,
            score=log_prob / length_penalty(len(target_ids), self._alpha),
            tokens=tuple(self._target_tokenizer.pieces(target_ids)),
            token_log_probs=tuple(map(float, log_probs)),
        )


def _append_eos(ids: list[int], longest: int, side: str) -> list[int]:
    """Append EOS.

    Raises:
        UserError: If there are no ids, or too many.
    """
    if not ids:
        raise UserError(f"received an empty {side}, expected a sentence.")
    if len(ids) + 1 > longest:
        raise UserError(
            f"received a {side} of {len(ids) + 1} tokens with the end of sentence, "
            f"expected at most {longest}: leave this pair out."
        )
    return [*ids, EOS_ID]


def _as_batch(pairs: list[Pair], length: int) -> Batch:
    """Return ids of both sides, int32 `[rows, length]`."""
    sides = zip(*pairs, strict=True)
    return {
        name: tf.constant(padded(side, length))
        for name, side in zip((INPUTS, TARGETS), sides, strict=True)
    }
