"""The limits of CTranslate2, a C++ engine, and a translator that uses it.

Imports neither TensorFlow nor, before it is used, CTranslate2.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from t2t_repro.constants import EOS_ID
from t2t_repro.data.batch_plan import batches_by_length
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.hypothesis import Hypothesis, length_penalty
from t2t_repro.decoding.sentences import SentenceTranslator, longest_piece
from t2t_repro.decoding.source_pieces import Piece
from t2t_repro.errors import UsageError, UserError
from t2t_repro.machine import available_cores
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer import Tokenizer, distinct_entries

INSTALL = "pip install ctranslate2"

Source = tuple[int, ...]  # ids with EOS

# Settings that this engine follows. `write_beam_scores` is for the output's format.
_FOLLOWED = frozenset(
    {
        "beam_size",
        "alpha",
        "extra_length",
        "batch_size",
        "return_beams",
        "write_beam_scores",
        "prefer_unrepaired",
        "mbr_scale",
        "mbr_consensus",
    }
)


def import_ctranslate2() -> ModuleType:
    """Import the optional package `ctranslate2`.

    Raises:
        UserError: If it is not installed.
    """
    try:
        return importlib.import_module("ctranslate2")
    except ImportError as error:
        raise UserError(
            f"CTranslate2 cannot be imported ({error}): install it with `{INSTALL}`."
        ) from error


def check_followed(hparams: DecodeHParams) -> None:
    """Refuse settings of the search that CTranslate2 does not follow here.

    Raises:
        UsageError: If one is set.
    """
    ignored = sorted(set(DecodeHParams().diff(hparams)) - _FOLLOWED)
    if ignored:
        raise UsageError(
            f"{hparams.argument()}: {', '.join(ignored)} not supported by the "
            f"engine ctranslate2, which supports {', '.join(sorted(_FOLLOWED))}."
        )


class CTranslate2Translator(SentenceTranslator):
    """Translator of lists of sentences with a model in CTranslate2's format.

    Inputs, pieces of long sources, limits of the length and outputs are those of
    `Translator`. Greedy search (`beam_size=1`) is the same too.
    Differs from `Translator` with beams: the search of a sentence ends when `beam_size`
    hypotheses have ended, whatever their scores, because CTranslate2 can neither use
    the length penalty ((5 + n) / 6)^alpha nor prove that a hypothesis is the best. It
    searches with its own penalty n^alpha; all its hypotheses are ranked here by ours.
    The scores leave out the probability of PAD; see `ctranslate2_spec.py`.

    Args:
        engine: A model that `load_engine` loaded; translators may share it.
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the outputs.
        hparams: See `DecodeHParams`; `batch_size` counts source tokens.
        max_input_length: See `SentenceTranslator`.
        positions: Longest source or translation in tokens, including EOS, for which the
            model has encodings of positions.
        problem: See `SentenceTranslator`.

    Raises:
        UserError: If the model has too few positions.
        UsageError: If a setting has no effect here.
    """

    def __init__(
        self,
        engine: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
        *,
        positions: int,
        problem: Problem | None = None,
    ) -> None:
        check_followed(hparams)
        super().__init__(
            source_tokenizer, target_tokenizer, hparams, max_input_length, problem
        )
        longest = needed_positions(max_input_length, hparams.extra_length)
        if longest > positions:
            raise UserError(
                f"received extra_length={hparams.extra_length}, expected at most "
                f"{hparams.extra_length - longest + positions}: the model has "
                f"{positions} positions; export it again with this extra_length."
            )
        self._source_entries = distinct_entries(source_tokenizer)
        entries = distinct_entries(target_tokenizer)
        self._target_ids = {entry: number for number, entry in enumerate(entries)}
        self._engine = engine

    def _search_batches(
        self, pieces: list[Piece]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        if any(piece.prefix for piece in pieces):
            raise UsageError("the engine CTranslate2 does not support target prefixes.")
        # Equal pieces are translated once. A long line of one symbol has many of them.
        numbers_of: dict[Source, list[int]] = {}
        for number, piece in enumerate(pieces):
            numbers_of.setdefault(tuple(piece.ids), []).append(number)
        for found in self._search_sources(list(numbers_of)):
            numbers: list[int] = []
            hypotheses: list[list[Hypothesis]] = []
            for source, result in found:
                equal = numbers_of[source]
                numbers += equal
                hypotheses += [self._hypotheses(result)] * len(equal)
            yield numbers, hypotheses

    def _search_sources(
        self, sources: list[Source]
    ) -> Iterator[list[tuple[Source, Any]]]:
        """Yield sources and CTranslate2's results, batch by batch, longest first.

        CTranslate2 has one limit of the output's length per batch, and ours depends on
        the length of the source. A batch has the limit of its longest source. The few
        others that reach their own limit are searched again, with those of their
        length: the last step before a limit also takes hypotheses that do not end.
        """
        extra = self.hparams.extra_length
        too_long: list[Source] = []
        # All batches are queued at once, and translated in this order.
        waiting = [(batch, self._submit(batch)) for batch in self._batches(sources)]
        for batch, futures in waiting:
            found = []
            for source, future in zip(batch, futures, strict=True):
                result, limit = future.result(), len(source) + extra
                is_shorter = len(source) < len(batch[0])
                if is_shorter and max(map(len, result.hypotheses)) >= limit:
                    too_long.append(source)
                else:
                    found.append((source, result))
            yield found
        for _, same in itertools.groupby(too_long, key=lambda source: len(source)):
            yield from self._search_sources(list(same))

    def _batches(self, sources: list[Source]) -> list[list[Source]]:
        lengths = [*map(len, sources)]
        return [
            [sources[index] for index in indices]
            for indices in batches_by_length(lengths, self.hparams.batch_size)
        ]

    def _submit(self, sources: list[Source]) -> list[Any]:
        """Queue a batch, longest first, and return its future results."""
        hparams = self.hparams
        return self._engine.translate_batch(
            [[self._source_entries[token] for token in ids] for ids in sources],
            asynchronous=True,
            beam_size=hparams.beam_size,
            num_hypotheses=hparams.beam_size,
            length_penalty=hparams.alpha,
            # No limit: the default cuts sources at 1,024 tokens.
            max_input_length=0,
            max_decoding_length=len(sources[0]) + hparams.extra_length,
            # The default forbids an empty translation.
            min_decoding_length=0,
            return_end_token=True,
            return_scores=True,
        )

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        """Rank the hypotheses of a piece as `beam_search` does."""
        found = [
            self._hypothesis(tokens, score)
            for tokens, score in zip(result.hypotheses, result.scores, strict=True)
        ]
        # Hypotheses that were cut at the limit count only if there are no others.
        ended = [h for h in found if h.ids and h.ids[-1] == EOS_ID]
        found = sorted(ended or found, key=lambda h: -h.score)
        return found[: self.hparams.num_hypotheses]

    def _hypothesis(self, tokens: Sequence[str], score: float) -> Hypothesis:
        """Turn entries of the vocabulary and CTranslate2's score into ours."""
        ids = tuple(self._target_ids[token] for token in tokens)
        length, alpha = len(ids), self.hparams.alpha
        log_probability = score * length**alpha
        return Hypothesis(
            self.target_tokenizer.decode(ids),
            log_probability / length_penalty(length, alpha),
            ids=ids,
        )


def needed_positions(max_input_length: int, extra_length: int) -> int:
    """Return the length of the longest translation, in tokens with EOS.

    Args:
        max_input_length: Longest source that the model reads, in tokens with EOS.
        extra_length: Tokens by which a translation may be longer than its source.
    """
    return longest_piece(max_input_length) + 1 + extra_length


def load_engine(
    model_dir: str | Path, quantization: str = "float32", num_threads: int | None = None
) -> Any:
    """Load a CTranslate2 model on the CPU.

    Small matrices gain little from several cores, so every batch has one.

    Args:
        model_dir: Folder with model.bin.
        quantization: Format of the model's weights, in which it also computes, as far
            as the processor can.
        num_threads: Number of batches that are translated at the same time; by default
            the number of cores that the process may use.

    Returns:
        A `ctranslate2.Translator`.

    Raises:
        UserError: If `ctranslate2` is not installed or cannot read the folder.
    """
    ctranslate2 = import_ctranslate2()
    try:
        return ctranslate2.Translator(
            str(model_dir),
            compute_type=_compute_type(ctranslate2, quantization),
            inter_threads=num_threads or available_cores(),
            intra_threads=1,
            max_queued_batches=-1,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"CTranslate2 cannot read {model_dir}: {str(error).splitlines()[0]}"
        ) from error


def _compute_type(ctranslate2: ModuleType, quantization: str) -> str:
    """Return the type to compute in; without one, CTranslate2 warns of its choice."""
    if quantization in ctranslate2.get_supported_compute_types("cpu"):
        return quantization
    return "int8_float32" if quantization.startswith("int8") else "float32"
