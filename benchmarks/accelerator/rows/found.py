"""Systems whose translations were found elsewhere, to be scored as any other system."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.accelerator.rows.corpus import Corpus
from t2t_repro.constants import PAD_ID
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.decoding.sentences import SentenceTranslator
from t2t_repro.decoding.source_pieces import Piece
from t2t_repro.runs.translating_system import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams


class FoundSystem(TranslatingSystem):
    """A system whose translations have been found elsewhere.

    Args:
        data: Prepared data of its training.
        hparams: Hparams of its model.
        corpus: Corpus of the sources.
        ids: Ids of the translation of each source, int `[sources, length]`.
    """

    data_dir = None
    max_input_length = 0  # set below

    def __init__(
        self, data: PreparedData, hparams: HParams, corpus: Corpus, ids: np.ndarray
    ) -> None:
        super().__init__(data.problem, data.tokenizers(), "")
        self.max_input_length = hparams.max_length
        pieces = np.split(corpus.sources.ids, corpus.sources.ends[:-1])
        self.found = dict(zip(map(tuple, pieces), ids, strict=True))

    def _new_translator(self, hparams: DecodeHParams) -> _FoundTranslator:
        return _FoundTranslator(self, hparams)


class _FoundTranslator(SentenceTranslator):
    """Translator of a `FoundSystem`, whose search has been made."""

    def __init__(self, system: FoundSystem, hparams: DecodeHParams) -> None:
        super().__init__(
            system.source_tokenizer,
            system.target_tokenizer,
            hparams,
            system.max_input_length,
            problem=system.problem,
        )
        self._found = system.found

    def _search_batches(
        self, pieces: list[Piece]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        for number, piece in enumerate(pieces):
            ids = tuple(int(x) for x in self._found[tuple(piece.ids)] if x != PAD_ID)
            text = self.target_tokenizer.decode(list(ids))
            yield [number], [[Hypothesis(text, 0.0, ids=ids)]]
