"""Settings of data preparation: how text becomes shards."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PrepareSettings:
    """How text becomes shards; two preparations agree only if all of it agrees.

    Attributes:
        vocab_size: entries of the subword vocabulary, the special ones included.
        model_type: "bpe" or "unigram".
        shared_vocabulary: one vocabulary for both sides.
        max_length: longest side kept, in subwords with the end-of-sentence one.
        max_length_ratio: longest side over shortest side, in subwords, that is kept;
            0 keeps every pair.
        drop_duplicates: drop a training pair seen before, both sides equal.
        num_shards: files that the training split is spread over.
        seed: decides the order of the training pairs in the shards.
        character_coverage: share of the training text's characters that get an entry
            of their own; the rest is spelt in bytes.
        source_model: a SentencePiece model file of the user's for the inputs.
        target_model: the same for the targets.
    """

    vocab_size: int = 8_000
    model_type: str = "bpe"
    shared_vocabulary: bool = True
    max_length: int = 256
    max_length_ratio: float = 0.0
    drop_duplicates: bool = False
    num_shards: int = 10
    seed: int = 1
    character_coverage: float = 0.9999
    source_model: str | None = None
    target_model: str | None = None
