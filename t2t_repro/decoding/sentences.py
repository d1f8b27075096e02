"""Translate sentences with any engine: cut, search, join, finish.

Imports no TensorFlow, so that an engine without it starts at once.
"""

from __future__ import annotations

import abc
import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from t2t_repro.constants import EOS_ID
from t2t_repro.data.problem import Output
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

MIN_SOURCE_BUCKET = 8  # tokens
CHUNK_SIZE = 1024  # sentences; about 16 batches of the default size


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: Log-probability divided by the length penalty, in nats.
        repairs: Repairs of the model's output; see `Output`.
        ids: The ids that the model wrote, with EOS if it wrote one. The ids of a source
            in several pieces follow each other.
    """

    text: str
    score: float
    repairs: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


def count_repairs(hypotheses: Sequence[Hypothesis]) -> dict[str, int]:
    """Count the outputs per kind of repair, most frequent first."""
    faults = Counter(fault for best in hypotheses for fault in best.repairs)
    return dict(faults.most_common())


def longest_piece(max_input_length: int) -> int:
    """Return the number of source tokens to translate at once, without EOS.

    Args:
        max_input_length: Longest source that the model reads, including EOS.
    """
    return max(max_input_length, MIN_SOURCE_BUCKET) - 1


class SentenceTranslator(abc.ABC):
    """Translate lists of sentences; a subclass searches batches of pieces.

    Args:
        source_tokenizer: Tokenizer of the inputs.
        target_tokenizer: Tokenizer of the outputs.
        hparams: See `DecodeHParams`.
        max_input_length: Longest source in tokens, including EOS, to translate in one
            piece. A longer one is cut, and the translations of its pieces are joined.
        normalize_source: Maps a user's sentence to the form of the training sources.
        postprocess: Maps a source and the model's output to the output for the user.
    """

    def __init__(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        hparams: DecodeHParams,
        max_input_length: int,
        *,
        normalize_source: Callable[[str], str] = str,
        postprocess: Callable[[str, str], Output] = lambda source, written: Output(
            written
        ),
    ) -> None:
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.hparams = hparams
        self._longest_piece = longest_piece(max_input_length)
        self._normalize_source = normalize_source
        self._postprocess = postprocess

    @abc.abstractmethod
    def _search_batches(
        self, sources: list[list[int]]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """Search for translations of pieces, batch by batch, in any order.

        Args:
            sources: Ids of each piece, with EOS.

        Yields:
            The numbers of the pieces of a batch, and their hypotheses, best first.
        """

    def translate(
        self,
        sentences: Sequence[str],
        advance: Callable[[int], object] = lambda count: None,
    ) -> list[list[Hypothesis]]:
        """Translate sentences, all batched together.

        Args:
            sentences: Source texts. A text without tokens has an empty translation.
            advance: Called with the number of sentences completed since the last call.

        Returns:
            The hypotheses of each sentence, best first: `beam_size` of them if the
            hparams' `return_beams` is set (fewer if fewer exist), else one. With
            `prefer_unrepaired`, repaired hypotheses rank below the others.
        """
        return self._translate_chunk(sentences, 0, advance)

    def stream(
        self,
        sentences: Sequence[str],
        advance: Callable[[int], object] = lambda count: None,
        chunk_size: int = CHUNK_SIZE,
    ) -> Iterator[list[Hypothesis]]:
        """Translate sentences chunk by chunk; the results are those of `translate`.

        Args:
            sentences: See `translate`.
            advance: See `translate`.
            chunk_size: Sentences that are sorted and batched together.

        Yields:
            The hypotheses of each sentence, in order.
        """
        for start in range(0, len(sentences), chunk_size):
            chunk = sentences[start : start + chunk_size]
            yield from self._translate_chunk(chunk, start, advance)

    def _translate_chunk(
        self, sentences: Sequence[str], first: int, advance: Callable[[int], object]
    ) -> list[list[Hypothesis]]:
        """Translate sentences whose first one has the number `first`."""
        if isinstance(sentences, str):
            raise ValueError(
                f"`sentences` must be a list of sentences. Received: {sentences!r}"
            )
        sources = self.source_tokenizer.encode_batch(
            [*map(self._normalize_source, sentences)]
        )
        pieces = [
            (number, piece)
            for number, ids in enumerate(sources)
            for piece in self._pieces(first + number, ids)
        ]
        owners = [number for number, _ in pieces]
        found: dict[int, list[list[Hypothesis]]] = {}
        translated = self._translate_ids([ids for _, ids in pieces], owners, advance)
        for number, hypotheses in zip(owners, translated, strict=True):
            found.setdefault(number, []).append(hypotheses)
        advance(len(sentences) - len(found))
        nothing = [[Hypothesis("", 0.0)]]
        return [
            self._finished(sentence, found.get(number, nothing))
            for number, sentence in enumerate(sentences)
        ]

    def _finished(
        self, sentence: str, pieces: list[list[Hypothesis]]
    ) -> list[Hypothesis]:
        finished = []
        for hypothesis in _join(pieces):
            output = self._postprocess(sentence, hypothesis.text)
            finished.append(
                dataclasses.replace(
                    hypothesis, text=output.text, repairs=output.repairs
                )
            )
        if self.hparams.prefer_unrepaired:
            finished.sort(key=lambda hypothesis: bool(hypothesis.repairs))
        return finished if self.hparams.return_beams else finished[:1]

    def _pieces(self, number: int, ids: list[int]) -> list[list[int]]:
        """Append EOS, and cut a source that is too long for the model."""
        longest = self._longest_piece
        if len(ids) > longest:
            logger.warning(
                "line %d has %d tokens, more than %d: translated in %d pieces",
                number + 1,
                len(ids),
                longest,
                -(-len(ids) // longest),
            )
        return [
            [*ids[start : start + longest], EOS_ID]
            for start in range(0, len(ids), longest)
        ]

    def _translate_ids(
        self,
        sources: list[list[int]],
        owners: list[int],
        advance: Callable[[int], object],
    ) -> list[list[Hypothesis]]:
        """Translate pieces.

        Args:
            sources: Ids of the pieces.
            owners: Number of the sentence of each piece.
            advance: Called after every batch with the number of sentences that it
                completed.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        left = Counter(owners)
        for numbers, found in self._search_batches(sources):
            for number, hypotheses in zip(numbers, found, strict=True):
                results[number] = hypotheses
            before = len(left)
            left -= Counter(owners[number] for number in numbers)
            advance(before - len(left))
        return results


def _join(pieces: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Join the pieces of a sentence, best with best, second with second."""
    if len(pieces) == 1:
        return pieces[0]
    return [
        Hypothesis(
            " ".join(h.text for h in row),
            sum(h.score for h in row),
            ids=tuple(token for h in row for token in h.ids),
        )
        for row in zip(*pieces, strict=False)
    ]
