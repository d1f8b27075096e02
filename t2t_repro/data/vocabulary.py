"""Tokenizers of a problem: its symbols, the user's own models, or learned models."""

from __future__ import annotations

import logging
import operator
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from t2t_repro.data.problem import Pair, Problem, checked_pairs, counted
from t2t_repro.errors import UsageError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import (
    SentencePieceTokenizer,
    SymbolTokenizer,
    Tokenizer,
    load_tokenizer,
    tokenizer_suffixes,
    train_sentencepiece,
)
from t2t_repro.text.tokenizer import split_symbols

logger = logging.getLogger(__name__)

# More text hardly changes the subwords, and costs memory and time. tensor2tensor takes
# only a megabyte per file (text_encoder.py, file_byte_budget).
MAX_TRAINING_PAIRS = 250_000
_SAMPLE_SEED = "vocabulary"

_Item = TypeVar("_Item")


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
    source = _load_own_model(settings.source_model)
    if settings.target_model is None:
        return source, source
    target = _load_own_model(settings.target_model)
    same = source.to_bytes() == target.to_bytes()
    return (source, source) if same else (source, target)


def learn_tokenizers(
    problem: Problem,
    settings: PrepareSettings,
    tmp_dir: str | Path | None,
) -> tuple[Tokenizer, Tokenizer]:
    """Learn the tokenizers from the training text, or from a sample of a long text.

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
    to_symbols = problem.vocabulary.kind == "subwords_to_symbols"
    symbols: set[str] = set()
    read = checked_pairs(problem, "train", tmp_dir)
    pairs = random_sample(
        counted(
            _collect_symbols(read, problem, symbols) if to_symbols else read,
            problem.num_pairs("train", tmp_dir),
        ),
        MAX_TRAINING_PAIRS,
    )
    logger.info("learning %d subwords from %d pairs", settings.vocab_size, len(pairs))
    sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
    if to_symbols:
        own = settings.source_model
        source = _learn(sources, settings) if own is None else _load_own_model(own)
        return source, SymbolTokenizer(sorted(symbols))
    if settings.shared_vocabulary:
        shared = _learn((*sources, *targets), settings)
        return shared, shared
    return _learn(sources, settings), _learn(targets, settings)


def learn_from_lines(lines: Iterable[str], settings: PrepareSettings) -> Tokenizer:
    """Learn a subword vocabulary from lines, or from a sample of many lines.

    Args:
        lines: The lines.
        settings: Settings of the vocabulary.

    Raises:
        UserError: If they do not allow a vocabulary of the requested size.
    """
    return _learn(random_sample(lines, 2 * MAX_TRAINING_PAIRS), settings)


def _collect_symbols(
    pairs: Iterable[Pair], problem: Problem, symbols: set[str]
) -> Iterator[Pair]:
    """Yield pairs, and add the symbols of every target: a sample may miss rare ones."""
    for pair in pairs:
        symbols.update(split_symbols(problem.encode_target(pair[1])))
        yield pair


def _load_own_model(path: str) -> Tokenizer:
    known = Path(path).suffix in tokenizer_suffixes()
    tokenizer = load_tokenizer(path) if known else SentencePieceTokenizer(path)
    if isinstance(tokenizer, SentencePieceTokenizer) and not (
        tokenizer.has_byte_fallback()
    ):
        logger.warning(
            "%s has no byte fallback: unknown characters will be written as ⁇", path
        )
    return tokenizer


def _learn(lines: Sequence[str], settings: PrepareSettings) -> Tokenizer:
    model = train_sentencepiece(
        lines,
        vocab_size=settings.vocab_size,
        model_type=settings.model_type,
        character_coverage=settings.character_coverage,
    )
    return SentencePieceTokenizer(model)


def random_sample(items: Iterable[_Item], limit: int) -> list[_Item]:
    """Return a random sample of a text of unknown length, in the order of the text.

    A text always gives the same sample, in which every item has the same chance
    (Vitter 1985, "Random sampling with a reservoir", algorithm R).

    Args:
        items: Pairs or lines of the text.
        limit: Largest number of items to return; a shorter text is returned whole.
    """
    generator = random.Random(_SAMPLE_SEED)
    sample: list[tuple[int, _Item]] = []
    for index, item in enumerate(items):
        if index < limit:
            sample.append((index, item))
            continue
        place = int(generator.random() * (index + 1))
        if place < limit:
            sample[place] = index, item
    sample.sort(key=operator.itemgetter(0))
    return [item for _, item in sample]
