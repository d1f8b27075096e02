"""Tokenizers of a problem: its symbols, the user's own models, or learned models."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from t2t_repro.data.pairs import Pair, checked_pairs
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import (
    SentencePieceTokenizer,
    SymbolTokenizer,
    Tokenizer,
    train_sentencepiece,
)
from t2t_repro.text.symbols import split_symbols

logger = logging.getLogger(__name__)

# More text hardly changes the subwords, and costs memory and time.
MAX_TRAINING_PAIRS = 2_000_000


def given_tokenizers(
    problem: Problem, settings: PrepareSettings
) -> tuple[Tokenizer, Tokenizer] | None:
    """Return the tokenizers that do not depend on the training text.

    Args:
        problem: The problem.
        settings: Settings, which may name the user's own models.

    Returns:
        Tokenizers of the inputs and of the targets (one object twice if the
        vocabulary is shared), or None if they have to be learned.

    Raises:
        UserError: If one of the user's own models cannot be used.
        UsageError: If there is a model for the targets only.
    """
    if problem.vocabulary.kind == "symbols":
        symbols = SymbolTokenizer(problem.vocabulary.symbols)
        return symbols, symbols
    if problem.vocabulary.kind == "subwords_to_symbols":
        return None
    if settings.source_model is None and settings.target_model is None:
        return None
    if settings.source_model is None:
        raise UsageError(
            "received a model for the targets only, expected one for the inputs too, "
            "or one for the inputs that both sides share"
        )
    source = _own_model(settings.source_model)
    if settings.target_model is None:
        return source, source
    target = _own_model(settings.target_model)
    same = source.to_bytes() == target.to_bytes()
    return (source, source) if same else (source, target)


def learn_tokenizers(
    problem: Problem, settings: PrepareSettings, tmp_dir: str | Path | None
) -> tuple[Tokenizer, Tokenizer]:
    """Learn the tokenizers from the training text.

    Args:
        problem: The problem.
        settings: Settings of the vocabulary.
        tmp_dir: Folder for downloads, or None for the source's own default.

    Returns:
        Tokenizers of the inputs and of the targets; one object twice if the vocabulary
        is shared.

    Raises:
        UserError: If the problem does not yield pairs of strings, or its text does not
            allow a vocabulary of the requested size.
    """
    pairs = spread_sample(checked_pairs(problem, "train", tmp_dir), MAX_TRAINING_PAIRS)
    sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
    if problem.vocabulary.kind == "subwords_to_symbols":
        own = settings.source_model
        source = _learn(sources, settings) if own is None else _own_model(own)
        return source, _symbols_of(map(problem.encode_target, targets))
    if settings.shared_vocabulary:
        shared = _learn((*sources, *targets), settings)
        return shared, shared
    return _learn(sources, settings), _learn(targets, settings)


def _symbols_of(texts: Iterable[str]) -> SymbolTokenizer:
    """Make the vocabulary of all symbols in the texts."""
    return SymbolTokenizer(sorted({s for text in texts for s in split_symbols(text)}))


def _own_model(path: str) -> SentencePieceTokenizer:
    tokenizer = SentencePieceTokenizer(path)
    if not tokenizer.has_byte_fallback():
        logger.warning(
            "%s has no byte fallback: unknown characters will be written as ⁇", path
        )
    return tokenizer


def _learn(lines: Sequence[str], settings: PrepareSettings) -> Tokenizer:
    return SentencePieceTokenizer(
        train_sentencepiece(
            lines,
            vocab_size=settings.vocab_size,
            model_type=settings.model_type,
            character_coverage=settings.character_coverage,
        )
    )


def spread_sample(pairs: Iterable[Pair], limit: int) -> list[Pair]:
    """Return evenly spaced pairs of a text of unknown length.

    All pairs are taken until there are too many. Then every second one is dropped, only
    every second one of the rest is taken, and so on.

    Args:
        pairs: Pairs of the text.
        limit: Largest number of pairs to return.
    """
    sample: list[Pair] = []
    step = 1
    for index, pair in enumerate(pairs):
        if index % step:
            continue
        if len(sample) == limit:
            sample = sample[::2]
            step *= 2
            if index % step:
                continue
        sample.append(pair)
    return sample
