"""Encode pairs of text as examples, in this process or in worker processes.

Nothing here imports TensorFlow, so that a worker process starts quickly and stays
small.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2t_repro.constants import EOS_ID
from t2t_repro.data.digests import pair_digests
from t2t_repro.data.examples import example_bytes
from t2t_repro.data.pairs import has_empty_side
from t2t_repro.data.subword_sampling import Ids, SubwordSampling
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import SIDES


@dataclass(frozen=True)
class TextBatch:
    """Consecutive pairs of a split.

    Attributes:
        sources: Source texts.
        targets: Target texts.
        written: Texts that the model learns to write for the targets.
        copies: Number of times that each pair is written to the shards.
        number: Number of the batch in its split, from 0.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    written: Sequence[str]
    copies: Sequence[int]
    number: int

    def digests(self) -> np.ndarray:
        """Return the `pair_digest` of each pair, uint64 `[pairs]`."""
        return pair_digests(zip(self.sources, self.targets, strict=True))

    def text_digest(self, digests: np.ndarray) -> str:
        """Return a digest of everything in the batch.

        Args:
            digests: Return value of `digests`.
        """
        digest = hashlib.blake2b(digests.tobytes(), digest_size=16)
        digest.update(np.asarray(self.copies, np.int32).tobytes())
        written = "\0".join(self.written)
        digest.update(written.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True)
class Examples:
    """Pairs in the form of the shards.

    Attributes:
        source_lengths: Subwords of the inputs, with the end of sentence, int32
            `[examples]`.
        target_lengths: Subwords of the targets, with the end of sentence, int32
            `[examples]`.
        records: Serialized `tf.train.Example` of each pair.
    """

    source_lengths: np.ndarray
    target_lengths: np.ndarray
    records: list[bytes]


@dataclass(frozen=True)
class EncodedBatch:
    """The pairs of a `TextBatch` as examples.

    The filters read the lengths here, which do not depend on any sampling.

    Attributes:
        digests: `pair_digest` of each pair, uint64 `[pairs]`.
        text_digest: Digest of the `TextBatch`.
        is_empty: Whether a side has no text or no subwords, bool `[pairs]`.
        source_lengths: Subwords of the inputs, with the end of sentence, int32
            `[pairs]`.
        target_lengths: Subwords of the targets, with the end of sentence, int32
            `[pairs]`.
        copies: Number of times that each pair is written, int32 `[pairs]`.
        examples: All copies of the first pair, then of the second one, and so on.
    """

    digests: np.ndarray
    text_digest: str
    is_empty: np.ndarray
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    copies: np.ndarray
    examples: Examples


@dataclass(frozen=True)
class PairEncoder:
    """Encoder of batches of pairs; a worker process receives it once.

    Attributes:
        tokenizers: Tokenizers of the inputs and of the targets.
        sampling: How to sample the subwords of every copy; None = all copies have the
            usual subwords.
    """

    tokenizers: tuple[Tokenizer, Tokenizer]
    sampling: SubwordSampling | None = None

    @property
    def copies(self) -> int:
        """Number of copies of a pair, unless the pair asks for more."""
        return 1 if self.sampling is None else self.sampling.copies

    def __call__(self, batch: TextBatch) -> EncodedBatch:
        """Return the examples of a batch."""
        # `encode_batch` starts threads, which would compete with the other workers.
        inputs, targets = (
            [tokenizer.encode(text) for text in texts]
            for tokenizer, texts in zip(
                self.tokenizers, (batch.sources, batch.written), strict=True
            )
        )
        source_lengths, target_lengths = (_lengths(side) for side in (inputs, targets))
        pairs = zip(batch.sources, batch.targets, strict=True)
        blank = np.array([has_empty_side(pair) for pair in pairs], bool)
        digests = batch.digests()
        copies = np.array(batch.copies, np.int32)
        if self.sampling is None:
            examples = _repeated(_examples(inputs, targets), copies)
        else:
            copies *= self.sampling.copies
            examples = self._sampled(self.sampling, batch, (inputs, targets), copies)
        return EncodedBatch(
            digests=digests,
            text_digest=batch.text_digest(digests),
            is_empty=blank | (source_lengths == 1) | (target_lengths == 1),
            source_lengths=source_lengths,
            target_lengths=target_lengths,
            copies=copies,
            examples=examples,
        )

    def _sampled(
        self,
        sampling: SubwordSampling,
        batch: TextBatch,
        usual: tuple[list[Ids], list[Ids]],
        copies: np.ndarray,
    ) -> Examples:
        """Return the examples of all copies, each with its own subwords."""
        inputs, targets = (
            sampling.side(name, tokenizer, texts, ids, copies.tolist(), batch.number)
            for name, tokenizer, texts, ids in zip(
                SIDES,
                self.tokenizers,
                (batch.sources, batch.written),
                usual,
                strict=True,
            )
        )
        return _examples(inputs, targets)


def _examples(inputs: list[Ids], targets: list[Ids]) -> Examples:
    """Return the examples of pairs of ids without the end of sentence."""
    return Examples(
        source_lengths=_lengths(inputs),
        target_lengths=_lengths(targets),
        records=[
            example_bytes([*source, EOS_ID], [*target, EOS_ID])
            for source, target in zip(inputs, targets, strict=True)
        ],
    )


def _repeated(examples: Examples, copies: np.ndarray) -> Examples:
    """Return the examples with the same copies of each."""
    return Examples(
        source_lengths=np.repeat(examples.source_lengths, copies),
        target_lengths=np.repeat(examples.target_lengths, copies),
        records=[
            record
            for record, count in zip(examples.records, copies, strict=True)
            for _ in range(count)
        ],
    )


def _lengths(side: list[Ids]) -> np.ndarray:
    """Return the lengths of the ids with an end of sentence, int32 `[texts]`."""
    return np.array([len(ids) + 1 for ids in side], np.int32)
