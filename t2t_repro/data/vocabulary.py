"""The tokenizers of a problem: its symbols, the user's own models, or learnt ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

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

Pair = tuple[str, str]

# Subwords learnt from more text than this hardly change; memory and time grow.
MAX_TRAINING_PAIRS = 2_000_000


def given_tokenizers(
    problem: Problem, settings: PrepareSettings
) -> tuple[Tokenizer, Tokenizer] | None:
    """Gives the source and target tokenizers if the training text is not needed.

    Raises:
        UserError: if a model file of the user's cannot be used.
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
            "received a model for the targets alone, expected one for the inputs too, "
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
    """Learns the source and target tokenizers from the training text.

    Raises:
        UserError: if the text does not allow the vocabulary asked for.
    """
    pairs = spread_sample(problem.pairs("train", tmp_dir), MAX_TRAINING_PAIRS)
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
    """Makes the vocabulary of all symbols that texts are written with."""
    return SymbolTokenizer(sorted({s for text in texts for s in split_symbols(text)}))


def _own_model(path: str) -> SentencePieceTokenizer:
    tokenizer = SentencePieceTokenizer(path)
    if not tokenizer.has_byte_fallback():
        logger.warning(
            "%s has no byte fallback: characters it does not know come out as ⁇", path
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
    """Gives evenly spaced pairs of a text of unknown length, `limit` at most.

    All pairs are taken until there are too many; then every second one is given up
    and every second one is taken from there on, and so forth.
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
