"""Compare a CTranslate2 model with the trained model that it was made from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from t2t_repro.constants import EOS_ID, INPUTS, PAD_ID, TARGETS
from t2t_repro.data.batch_plan import padded
from t2t_repro.decoding.hypothesis import Hypothesis, length_penalty
from t2t_repro.decoding.sentences import longest_piece
from t2t_repro.decoding.translator import Translator
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_limits import QUANTIZATIONS
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    CTranslate2Translator,
    load_engine,
)
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer import Tokenizer, distinct_entries
from t2t_repro.text_tables import quantity

_ROWS = 8  # pairs per pass; the logits of a large vocabulary are large


@dataclasses.dataclass(frozen=True)
class SearchParity:
    """Comparison of the translations of one beam size.

    Attributes:
        beam_size: Number of hypotheses per step; 1 is greedy search.
        equal: Number of sentences with the same best translation.
        mean_score_difference: Mean over the sentences of the absolute difference
            between CTranslate2's score of its best translation and the trained model's
            score of the same ids, in nats.
        largest_score_difference: Largest of these differences.
    """

    beam_size: int
    equal: int
    mean_score_difference: float
    largest_score_difference: float


@dataclasses.dataclass(frozen=True)
class Parity:
    """Differences between a CTranslate2 model and the trained model.

    Both sides count no probability of PAD.

    Attributes:
        sentences: Number of sentences that were compared.
        tokens: Number of tokens of the trained model's greedy translations, with EOS.
        mean_difference: Mean over these tokens of the absolute difference of their
            log-probabilities, in nats.
        largest_difference: Largest of these differences.
        pad_log_probability: Largest increase of a translation's log-probability because
            PAD has no probability in CTranslate2, in nats.
        searches: Comparison of the translations: greedy ones, then those of the beam.
    """

    sentences: int
    tokens: int
    mean_difference: float
    largest_difference: float
    pad_log_probability: float
    searches: tuple[SearchParity, ...]

    def lines(self) -> list[str]:
        """Return the figures as text."""
        found = [
            f"log-probabilities of {quantity(self.tokens, 'token')}: differ by "
            f"{self.mean_difference:.1e} on average, {self.largest_difference:.1e} at "
            "most"
        ]
        for search in self.searches:
            size = search.beam_size
            found.append(
                f"{'greedy search' if size == 1 else f'beam of {size}'}: "
                f"{search.equal} of {self.sentences} translations equal, scores differ "
                f"by {search.mean_score_difference:.1e} on average, "
                f"{search.largest_score_difference:.1e} at most"
            )
        return found

    def check(self, quantization: str) -> None:
        """Refuse a model that differs more than its format explains.

        Args:
            quantization: Format of the weights.

        Raises:
            UserError: If it differs more; the message gives figures and limits.
        """
        limits = QUANTIZATIONS[quantization]
        equal, least = self.searches[0].equal, math.floor(limits.equal * self.sentences)
        beyond = []
        # A NaN is beyond a limit, too.
        if not self.mean_difference <= limits.mean:
            beyond.append(
                f"log-probabilities of tokens differ by {self.mean_difference:.1e} on "
                f"average, expected at most {limits.mean:.0e}"
            )
        if not self.largest_difference <= limits.largest:
            beyond.append(
                "the log-probability of a token differs by "
                f"{self.largest_difference:.1e}, expected at most {limits.largest:.0e}"
            )
        if equal < least:
            beyond.append(
                f"{equal} of {self.sentences} greedy translations are equal, "
                f"expected at least {least}"
            )
        if beyond:
            raise UserError(
                f"the CTranslate2 model with {quantization} weights differs too much "
                "from the trained model, so nothing was written: "
                f"{'; '.join(beyond)}.\n"
                "Choose another quantization, or other sentences to compare, such as "
                "some that the model translates well."
            )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A trained model, and the folder of a CTranslate2 model with its weights.

    Attributes:
        model: A `Transformer` that computes in float32.
        tokenizers: Tokenizers of the inputs and of the targets.
        hparams: Settings of the search with a beam.
        max_input_length: Longest source in tokens, including EOS.
        folder: Folder with model.bin.
        quantization: Format of its weights.
        positions: Number of its positions.
    """

    model: keras.Model
    tokenizers: tuple[Tokenizer, Tokenizer]
    hparams: DecodeHParams
    max_input_length: int
    folder: Path
    quantization: str
    positions: int

    def measure(self, sentences: Sequence[str]) -> Parity:
        """Translate sentences with both engines and compare.

        Raises:
            UserError: If no sentence has a length that the model reads at once.
        """
        chosen, sources = self._choose(sentences)
        searches, greedy = [], []
        for beam_size in sorted({1, self.hparams.beam_size}):
            ours, theirs = self._translations(chosen, beam_size)
            greedy = greedy or ours
            searches.append(self._compare_searches(sources, ours, theirs, beam_size))
        targets = [[*hypothesis.ids[:-1], EOS_ID] for hypothesis in greedy]
        expected, pad = _log_probabilities(self.model, sources, targets)
        engine = load_engine(self.folder, self.quantization)
        source_entries, target_entries = map(distinct_entries, self.tokenizers)
        found = engine.score_batch(
            [[source_entries[token] for token in ids] for ids in sources],
            # It appends EOS itself.
            [[target_entries[token] for token in ids[:-1]] for ids in targets],
            max_batch_size=_ROWS,
            max_input_length=0,
        )
        log_probs = np.concatenate([result.log_probs for result in found])
        differences = np.abs(np.concatenate(expected) - log_probs)
        return Parity(
            sentences=len(chosen),
            tokens=len(differences),
            mean_difference=float(differences.mean()),
            largest_difference=float(differences.max()),
            pad_log_probability=max(pad),
            searches=tuple(searches),
        )

    def _choose(self, sentences: Sequence[str]) -> tuple[list[str], list[list[int]]]:
        """Return the sentences of one piece, and their ids with EOS."""
        longest = longest_piece(self.max_input_length)
        encoded = self.tokenizers[0].encode_batch(list(sentences))
        pairs = [
            (sentence, [*ids, EOS_ID])
            for sentence, ids in zip(sentences, encoded, strict=True)
            if 0 < len(ids) <= longest
        ]
        if not pairs:
            raise UserError(
                f"received {len(sentences)} sentences to compare CTranslate2 with the "
                f"trained model, expected at least one of 1 to {longest} tokens."
            )
        return [sentence for sentence, _ in pairs], [ids for _, ids in pairs]

    def _translations(
        self, sentences: list[str], beam_size: int
    ) -> list[list[Hypothesis]]:
        """Return the best translations by the trained model and by CTranslate2."""
        # Compare the most probable hypotheses, whatever the problem would choose.
        hparams = self.hparams.replace(
            beam_size=beam_size,
            return_beams=False,
            prefer_unrepaired=False,
            mbr_scale=0.0,
            mbr_consensus=False,
        )
        engines = (
            Translator(self.model, *self.tokenizers, hparams, self.max_input_length),
            CTranslate2Translator(
                load_engine(self.folder, self.quantization),
                *self.tokenizers,
                hparams,
                self.max_input_length,
                positions=self.positions,
            ),
        )
        return [[best for (best,) in engine.translate(sentences)] for engine in engines]

    def _compare_searches(
        self,
        sources: list[list[int]],
        ours: list[Hypothesis],
        theirs: list[Hypothesis],
        beam_size: int,
    ) -> SearchParity:
        targets = [list(hypothesis.ids) for hypothesis in theirs]
        token_log_probs, _ = _log_probabilities(self.model, sources, targets)
        differences = [
            abs(
                values.sum() / length_penalty(len(values), self.hparams.alpha)
                - hypothesis.score
            )
            for values, hypothesis in zip(token_log_probs, theirs, strict=True)
        ]
        return SearchParity(
            beam_size=beam_size,
            equal=sum(a.ids == b.ids for a, b in zip(ours, theirs, strict=True)),
            mean_score_difference=float(np.mean(differences)),
            largest_score_difference=float(np.max(differences)),
        )


def _log_probabilities(
    model: keras.Model, sources: list[list[int]], targets: list[list[int]]
) -> tuple[list[np.ndarray], list[float]]:
    """Return the trained model's log-probabilities without PAD.

    Args:
        model: A `Transformer`.
        sources: Ids of the sources, with EOS.
        targets: Ids of the targets.

    Returns:
        Log-probabilities of each target's tokens, float64 `[target_length]`; and the
        log-probability that each target gains because PAD has none, in nats.
    """
    found: list[np.ndarray] = []
    gains: list[float] = []
    for start in range(0, len(sources), _ROWS):
        rows = targets[start : start + _ROWS]
        # Keras warns of a softmax over one position.
        features = {
            name: padded(side, max(2, *map(len, side)))
            for name, side in (
                (INPUTS, sources[start : start + _ROWS]),
                (TARGETS, rows),
            )
        }
        logits = keras.ops.convert_to_numpy(model(features, training=False))
        for row, target in zip(logits.astype(np.float64), rows, strict=True):
            row = row[: len(target)]
            everything = _log_sum_exp(row)
            row[:, PAD_ID] = -np.inf
            without_pad = _log_sum_exp(row)
            found.append(row[np.arange(len(target)), target] - without_pad)
            gains.append(float((everything - without_pad).sum()))
    return found, gains


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    largest = logits.max(axis=-1)
    return largest + np.log(np.exp(logits - largest[:, None]).sum(axis=-1))
