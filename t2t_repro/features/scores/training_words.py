"""The words of the training text, for the score card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from t2t_repro.constants import TARGETS
from t2t_repro.data.pipeline import read_examples, readable
from t2t_repro.data.prepared import PreparedData
from t2t_repro.features.scores.word_counts import WordCounts, count_words
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.translation_scores import DEFAULT_TOKENIZER

MOST_PAIRS = 1_000_000  # about two minutes of one core
_BATCH = 512  # pairs


def count_training_words(
    data: PreparedData,
    advance: Callable[[int], object] = lambda count: None,
    tokenizer: str = DEFAULT_TOKENIZER,
) -> WordCounts | None:
    """Count the words of the training targets, in the shards.

    The shards hold an even sample of the text, so their first `MOST_PAIRS` pairs are
    enough. Copies of a pair for the sampling of subwords count once.

    Args:
        data: Prepared data of the problem.
        advance: Called with the number of pairs counted since the last call.
        tokenizer: sacreBLEU's tokenizer, which finds the words.

    Returns:
        The counts, or None if there is no training text in the data.

    Raises:
        UserError: If a file is missing or damaged.
    """
    if "train" not in data.splits:
        return None
    shards = data.shards("train")
    _, subwords = data.tokenizers()
    targets = read_examples(shards).map(lambda pair: pair[TARGETS]).take(MOST_PAIRS)
    counts: Counter[str] = Counter()
    pairs = 0
    for batch in readable(targets.ragged_batch(_BATCH)):
        texts = [subwords.decode(ids) for ids in batch.to_list()]
        counts.update(count_words(texts, tokenizer))
        pairs += len(texts)
        advance(len(texts))
    copies = PrepareSettings.value_in(data.manifest.settings, "subword_copies")
    once = {word: -(-count // copies) for word, count in counts.items()}
    return WordCounts(once, f"the training text ({-(-pairs // copies):,} pairs)")


def training_pairs_to_count(data: PreparedData) -> int:
    """Return the number of pairs that `count_training_words` reads."""
    counts = data.manifest.splits.get("train")
    return 0 if counts is None else min(counts.pairs_written, MOST_PAIRS)
