"""The expected cost of the words that a tree still lacks, by which a beam is ranked.

All hypotheses of a beam have the same number of tokens, but not of leaves. An opening
bracket that the model finds probable costs less than a leaf that it finds improbable,
so a beam that compares log-probabilities alone fills with hypotheses that put the next
leaf off. Stern et al. 2017 (arXiv:1707.08976) describe this, and compare hypotheses
with the same number of words instead. Here, as in the future cost of a phrase-based
decoder (Koehn et al. 2003), a hypothesis ranks by

    log P(tokens) - word_cost * (words without a leaf)

All trees over a sentence have the same number of leaves, so the expected cost is 0 at
their end, and their scores are the model's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from keras import KerasTensor, ops

from t2t_repro.decoding.grammar import NO_WORD

if TYPE_CHECKING:
    # At run time, the search needs no tokenizer.
    from t2t_repro.text.bracket_grammar import BracketGrammar


def leaf_bonus(
    grammar: BracketGrammar, word_cost: float, vocab_size: int
) -> np.ndarray:
    """Return the amounts by which tokens lower the expected cost.

    Args:
        grammar: The grammar.
        word_cost: Expected cost of a word, in nats.
        vocab_size: Number of tokens.

    Returns:
        float32 `[vocab_size]`: `word_cost` for leaves, 0 for other tokens.
    """
    bonus = np.zeros(vocab_size, "float32")
    for leaves in grammar.leaves:
        bonus[list(leaves)] = word_cost
    return bonus


def costs_left(
    bonus: np.ndarray, word_cost: float, ids: KerasTensor, word_kinds: KerasTensor
) -> KerasTensor:
    """Return the expected cost of the words without a leaf.

    Args:
        bonus: See `leaf_bonus`.
        word_cost: Expected cost of a word, in nats.
        ids: Hypotheses, int32 `[rows, beam, max_length]`, padded with PAD_ID.
        word_kinds: See `outside_grammar`.

    Returns:
        float32 `[rows, beam]`, in nats; negative only after a forced prefix with too
        many leaves.
    """
    num_words = ops.sum(ops.cast(word_kinds != NO_WORD, "float32"), axis=1)
    # Sums of whole numbers are exact.
    is_leaf = (bonus != 0).astype("float32")
    num_leaves = ops.sum(ops.take(is_leaf, ids, axis=0), axis=-1)
    return word_cost * (num_words[:, None] - num_leaves)
