"""Random segmentations of text by SentencePiece; the same seed gives the same ones.

BPE: every merge is skipped with a probability (BPE-dropout, Provilkov et al. 2020,
arXiv:1910.13267). Differs from the paper, which may apply a skipped merge in a later
step: SentencePiece (bpe_model.cc) does not try it again, so the same probability gives
slightly more subwords.

Unigram: a segmentation has the probability that the model gives it, to the power of an
exponent, divided by the sum over all segmentations (subword regularization, Kudo 2018,
arXiv:1804.10959, section 3.3, with all segmentations instead of the best l).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import sentencepiece

# The largest unsigned number of 32 bits means "no seed" to SentencePiece.
SEED_BITS = 31

# SentencePiece has one seed per process.
_seed_lock = threading.Lock()


def sampled_ids(
    processor: sentencepiece.SentencePieceProcessor,
    texts: Sequence[str],
    strength: float,
    seed: int,
) -> list[list[int]]:
    """Return the ids of a random segmentation of each text.

    Args:
        processor: A BPE or unigram model.
        texts: The texts.
        strength: For BPE the probability to skip a merge, for unigram the exponent of
            the probabilities.
        seed: Seed of all segmentations, less than 2 to the power of `SEED_BITS`.
    """

    def encode() -> list[list[int]]:
        # nbest_size=-1: from all segmentations.
        return [
            processor.encode(text, enable_sampling=True, alpha=strength, nbest_size=-1)
            for text in texts
        ]

    # SentencePiece has a random generator per thread, which takes the seed when the
    # thread first samples. So the segmentations depend on nothing but the seed only in
    # a new thread; in any other they continue a sequence that began earlier.
    with _seed_lock, ThreadPoolExecutor(max_workers=1) as new_thread:
        sentencepiece.set_random_generator_seed(seed)
        return new_thread.submit(encode).result()
