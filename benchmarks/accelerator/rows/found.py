"""Systems whose translations were found elsewhere, to be scored as any other system."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.accelerator.rows.corpus import Corpus
from t2t_repro.constants import PAD_ID
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.decoding.pieces import Piece
from t2t_repro.decoding.sentences import SentenceTranslator
from t2t_repro.decoding.text_forms import TextForms
from t2t_repro.runs.translating import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams

# Ids of a source -> ids of its translation, padded.
TranslationIds = dict[tuple[int, ...], np.ndarray]


class FoundTranslator(SentenceTranslator):
    """Translator whose search was made elsewhere.

    Args:
        found: Ids of the translation of each piece, by the ids of the piece.
        data: Prepared data of the system.
        hparams: Settings of the search that was made.
        max_input_length: See `SentenceTranslator`.
    """

    def __init__(
        self,
        found: TranslationIds,
        data: PreparedData,
        hparams: DecodeHParams,
        max_input_length: int,
    ) -> None:
        super().__init__(
            *data.tokenizers(),
            hparams,
            max_input_length,
            forms=TextForms.of(data.problem),
        )
        self._found = found

    def _search_batches(
        self, pieces: list[Piece]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        for number, piece in enumerate(pieces):
            ids = tuple(int(x) for x in self._found[tuple(piece.ids)] if x != PAD_ID)
            text = self.target_tokenizer.decode(list(ids))
            yield [number], [[Hypothesis(text, 0.0, ids=ids)]]


class FoundSystem(TranslatingSystem):
    """A system whose translations have been found elsewhere.

    Args:
        data: Prepared data of its training.
        max_input_length: Hparam `max_length` of its model.
        found: See `FoundTranslator`.
    """

    def __init__(
        self,
        data: PreparedData,
        max_input_length: int,
        found: TranslationIds,
    ) -> None:
        super().__init__(data.problem, data.tokenizers(), "")
        self._data = data
        self._max_input_length = max_input_length
        self._found = found

    @property
    def max_input_length(self) -> int:
        return self._max_input_length

    @property
    def data_dir(self) -> str | None:
        return None

    def _new_translator(self, hparams: DecodeHParams) -> FoundTranslator:
        return FoundTranslator(self._found, self._data, hparams, self._max_input_length)


def found_by_piece(corpus: Corpus, ids: np.ndarray) -> TranslationIds:
    """Return translations `[sources, length]` by the ids of their sources."""
    pieces = np.split(corpus.sources.ids, corpus.sources.ends[:-1])
    return {tuple(map(int, x)): y for x, y in zip(pieces, ids, strict=True)}
