"""Copies of training pairs whose sides are split into subwords at random.

Nothing here imports TensorFlow, as in `encoding`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer

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
