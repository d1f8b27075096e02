"""Encode pairs of text as examples, in this process or in worker processes.

Nothing here imports TensorFlow, so that a worker process starts quickly and stays
small.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from t2t_repro.constants import EOS_ID
from t2t_repro.data.pairs import has_empty_side
from t2t_repro.data.records import example_bytes
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings
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


def pair_digest(source: str, target: str) -> int:
    """Return a 64-bit hash of a pair of texts; millions of them fit in memory."""
    return int.from_bytes(_digest(source, target), "little")


def pair_digests(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Return the `pair_digest` of each pair, uint64 `[pairs]`."""
    content = b"".join(_digest(source, target) for source, target in pairs)
    return np.frombuffer(content, "<u8")


def _digest(source: str, target: str) -> bytes:
    # No line contains a newline, so the boundary of the two sides is unambiguous.
    text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()


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


Ids = list[int]


@dataclasses.dataclass(frozen=True)
class SubwordSampling:
    """How to sample the subwords of the training text.

    Attributes:
        copies: Number of copies of each pair.
        strength: See `Tokenizer.encode_sampled`.
        seed: Seed of the preparation.
        max_length: Most subwords of a side, without the end of sentence.
    """

    copies: int
    strength: float
    seed: int
    max_length: int

    @classmethod
    def of(cls, settings: PrepareSettings) -> SubwordSampling | None:
        """Return the sampling that settings ask for, or None."""
        if not settings.subword_sampling:
            return None
        return cls(
            copies=settings.subword_copies,
            strength=settings.subword_sampling,
            seed=settings.shuffle_seed,
            max_length=settings.max_pair_length - 1,
        )

    def side(
        self,
        name: str,
        tokenizer: Tokenizer,
        texts: Sequence[str],
        usual: Sequence[Ids],
        copies: Sequence[int],
        number: int,
    ) -> list[Ids]:
        """Return the sampled ids of one side of a batch of pairs.

        Args:
            name: Name of the side, which becomes part of the seed.
            tokenizer: Tokenizer of the side.
            texts: Texts of the side.
            usual: Ids of the texts without sampling. They replace a sample that is
                longer than `max_length`, so that every pair has all its copies.
            copies: Number of copies of each pair.
            number: Number of the batch in the text.

        Returns:
            The ids of all copies of the first text, then of the second one, and so on.
        """
        sampled: list[list[Ids]] = [[] for _ in texts]
        for copy in range(max(copies, default=0)):
            rows = [row for row, count in enumerate(copies) if count > copy]
            # A batch is the unit of work that depends neither on the number of worker
            # processes nor on the piece after which a preparation is resumed.
            seed = f"{self.seed}/{number}/{copy}/{name}"
            ids = tokenizer.encode_sampled(
                [texts[row] for row in rows], self.strength, seed
            )
            for row, sample in zip(rows, ids, strict=True):
                fits = len(sample) <= self.max_length
                sampled[row].append(sample if fits else [*usual[row]])
        return [sample for samples in sampled for sample in samples]


def check_sampling(
    settings: PrepareSettings, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    """Refuse to sample subwords if no side has any to choose from.

    One side is enough: trees, for example, are written in whole symbols, and their
    sentences in subwords.

    Raises:
        UserError: If each text of both sides has only one segmentation.
    """
    if settings.subword_sampling and not any(side.has_samples for side in tokenizers):
        raise UserError(
            f"received subword_sampling={settings.subword_sampling:g} for vocabularies "
            "of whole symbols, words or characters, expected a BPE or unigram model: "
            "leave out subword_sampling and subword_copies"
        )
