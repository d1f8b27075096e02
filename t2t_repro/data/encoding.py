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
from t2t_repro.text import Tokenizer


@dataclass(frozen=True)
class TextBatch:
    """Consecutive pairs of a split.

    Attributes:
        sources: Source texts.
        targets: Target texts.
        written: Texts that the model learns to write for the targets.
        copies: Number of times that each pair is written to the shards.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    written: Sequence[str]
    copies: Sequence[int]

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
class EncodedBatch:
    """The pairs of a `TextBatch` as examples.

    Attributes:
        digests: `pair_digest` of each pair, uint64 `[pairs]`.
        text_digest: Digest of the `TextBatch`.
        is_empty: Whether a side has no text or no subwords, bool `[pairs]`.
        source_lengths: Subwords of the inputs, with the end of sentence, int32
            `[pairs]`.
        target_lengths: Subwords of the targets, with the end of sentence, int32
            `[pairs]`.
        records: Serialized `tf.train.Example` of each pair.
        copies: Number of times that each pair is written, int32 `[pairs]`.
    """

    digests: np.ndarray
    text_digest: str
    is_empty: np.ndarray
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    records: list[bytes]
    copies: np.ndarray


@dataclass(frozen=True)
class PairEncoder:
    """Encode batches of pairs; a worker process receives it once.

    Attributes:
        tokenizers: Tokenizers of the inputs and of the targets.
    """

    tokenizers: tuple[Tokenizer, Tokenizer]

    def __call__(self, batch: TextBatch) -> EncodedBatch:
        """Return the examples of a batch."""
        # `encode_batch` starts threads, which would compete with the other workers.
        inputs, targets = (
            [[*tokenizer.encode(text), EOS_ID] for text in texts]
            for tokenizer, texts in zip(
                self.tokenizers, (batch.sources, batch.written), strict=True
            )
        )
        source_lengths, target_lengths = (
            np.array([len(ids) for ids in side], np.int32) for side in (inputs, targets)
        )
        pairs = zip(batch.sources, batch.targets, strict=True)
        blank = np.array([has_empty_side(pair) for pair in pairs], bool)
        digests = batch.digests()
        return EncodedBatch(
            digests=digests,
            text_digest=batch.text_digest(digests),
            is_empty=blank | (source_lengths == 1) | (target_lengths == 1),
            source_lengths=source_lengths,
            target_lengths=target_lengths,
            records=[*map(example_bytes, inputs, targets)],
            copies=np.array(batch.copies, np.int32),
        )
