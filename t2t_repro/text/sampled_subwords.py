"""Random segmentations of text into the subwords of a SentencePiece model.

BPE: BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267, algorithm 1). Before each
merge, every possible merge of the word is left out with a probability; the word is
complete when all are left out.

Unigram: subword regularization (Kudo 2018, arXiv:1804.10959, section 3.3). The
probability of a segmentation is the model's own to the power of an exponent, divided by
the sum over all segmentations, not only over the best ones.

SentencePiece can sample as well (`enable_sampling`), but it mixes a random number of
the process into every seed (`absl::BitGen` in version 0.2.3). Then the samples would
depend on the number of worker processes and on interruptions. Its BPE also never tries
a skipped merge again: its 0.1 gives about as many subwords as 0.2 of the paper.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

SPACE = "\u2581"

_Piece = sentencepiece_model_pb2.ModelProto.SentencePiece
_Spec = sentencepiece_model_pb2.TrainerSpec

# SentencePiece (unigram_model.cc, kUnkPenalty): the score of an unknown character is
# that much below the lowest score of the model.
_UNKNOWN_PENALTY = 10.0


def can_sample(model: sentencepiece_model_pb2.ModelProto) -> bool:
    """Return whether a model has several segmentations of a text.

    These are BPE and unigram models. Models with unused pieces are left out:
    SentencePiece merges these pieces first and then splits them again.
    """
    return model.trainer_spec.model_type in (_Spec.BPE, _Spec.UNIGRAM) and not any(
        piece.type == _Piece.UNUSED for piece in model.pieces
    )


class SubwordSampler:
    """Sample segmentations of a SentencePiece model.

    Args:
        processor: The model, which normalizes the text.
        model: Content of the model, for which `can_sample` holds.
    """

    def __init__(
        self,
        processor: sentencepiece.SentencePieceProcessor,
        model: sentencepiece_model_pb2.ModelProto,
    ) -> None:
        self._processor = processor
        self._is_bpe = model.trainer_spec.model_type == _Spec.BPE
        pieces = [(i, p) for i, p in enumerate(model.pieces) if p.type == _Piece.NORMAL]
        self._scores = {piece.piece: piece.score for _, piece in pieces}
        self._longest = max(map(len, self._scores), default=1)
        self._unknown_score = min(self._scores.values(), default=0) - _UNKNOWN_PENALTY
        self._whole = _user_symbols(model)
        self._ids = {piece.piece: index for index, piece in pieces} | self._whole
        self._bytes = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        self._words = _word_pattern(self._scores, self._whole)

    def ids(self, text: str, strength: float, generator: random.Random) -> list[int]:
        """Return the ids of a random segmentation of a text.

        Args:
            text: The text, which UTF-8 can encode.
            strength: For BPE the probability to leave out a merge, for unigram the
                exponent of the probabilities.
            generator: Source of the random numbers.
        """
        sample = self._merge if self._is_bpe else self._sample
        pieces: list[str] = []
        for word in self._words.findall(self._processor.normalize(text)):
            known = word in self._whole
            pieces += [word] if known else sample(word, strength, generator)
        return self._ids_of(pieces)

    def _merge(self, word: str, dropout: float, generator: random.Random) -> list[str]:
        """Merge the characters of a word in the order of BPE, with dropout."""
        symbols, scores = [*word], self._scores
        while True:
            best, place = -math.inf, -1
            for index, pair in enumerate(itertools.pairwise(symbols)):
                score = scores.get(pair[0] + pair[1])
                if score is None or (dropout and generator.random() < dropout):
                    continue
                if score > best:
                    best, place = score, index
            if place < 0:
                return symbols
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]

    def _sample(
        self, word: str, exponent: float, generator: random.Random
    ) -> list[str]:
        """Sample from all segmentations of a word into pieces of the unigram model.

        Forward filtering and backward sampling, after SentencePiece's
        `Lattice::Sample` (unigram_model.cc).
        """
        totals = [0.0]  # logarithms of the weights of all segmentations, by their end
        choices: list[tuple[list[str], list[float]]] = []
        for end in range(1, len(word) + 1):
            pieces, weights = [], []
            for start in range(max(0, end - self._longest), end):
                piece = word[start:end]
                score = self._scores.get(piece)
                if score is None and end - start == 1:
                    score = self._unknown_score
                if score is not None:
                    pieces.append(piece)
                    weights.append(totals[start] + exponent * score)
            largest = max(weights)
            relative = [math.exp(weight - largest) for weight in weights]
            totals.append(largest + math.log(sum(relative)))
            choices.append((pieces, relative))
        end, backwards = len(word), []
        while end:
            (piece,) = generator.choices(*choices[end - 1])
            backwards.append(piece)
            end -= len(piece)
        return backwards[::-1]

    def _ids_of(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids of pieces; the model may spell unknown ones in bytes."""
        unknown = self._processor.unk_id()
        has_bytes = self._bytes[0] != unknown
        ids: list[int] = []
        for piece in pieces:
            known = self._ids.get(piece)
            if known is not None:
                ids.append(known)
            elif has_bytes:
                ids += [self._bytes[byte] for byte in piece.encode()]
            elif not ids or ids[-1] != unknown:
                # SentencePiece joins neighbouring unknown characters.
                ids.append(unknown)
        return ids


def _user_symbols(model: sentencepiece_model_pb2.ModelProto) -> dict[str, int]:
    """Return the ids of the symbols that are never split."""
    return {
        piece.piece: index
        for index, piece in enumerate(model.pieces)
        if piece.type == _Piece.USER_DEFINED
    }


def _word_pattern(pieces: Iterable[str], whole: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds the parts of a text that no piece crosses.

    A part is a whole symbol, or a word with the space before it. If some piece has
    several spaces, the text between whole symbols is one part.
    """
    by_word = not any(SPACE in piece[1:] for piece in pieces)
    character = rf"[^{SPACE}]" if by_word else "."
    symbols = "|".join(re.escape(w) for w in sorted(whole, key=len, reverse=True))
    if not symbols:
        return re.compile(rf".{character}*", re.DOTALL)
    return re.compile(rf"{symbols}|.(?:(?!{symbols}){character})*", re.DOTALL)
