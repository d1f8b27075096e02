"""Write a trained system for CTranslate2, after comparing it with the trained model.

A program needs the packages `ctranslate2` and `sentencepiece`, and nothing of this one;
docs/serving.md has an example.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

import t2t_repro
from t2t_repro import features
from t2t_repro.constants import EOS_ID, INPUTS, PAD_ID, TARGETS
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.hypothesis import Hypothesis, length_penalty
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.decoding.sentences import longest_piece
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_system import (
    ExportDescription,
    check_exportable,
    checkpoint_digest,
    position_count,
)
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    QUANTIZATIONS,
    CTranslate2Translator,
    check_followed,
    load_engine,
)
from t2t_repro.files import atomic_folder
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer_files import SIDES, tokenizer_file_names
from t2t_repro.text_tables import quantity
from t2t_repro.training.checkpoint_paths import step_in_name

COMPARED_SENTENCES = 100
_DECODE_HPARAMS = ("beam_size", "alpha", "extra_length")
_ROWS = 8  # pairs per pass; the logits of a large vocabulary are large


def export_system(
    system: System,
    export_dir: str | Path,
    decode_hparams: DecodeHParams | None = None,
    *,
    quantization: str = "float32",
    sentences: Sequence[str] | None = None,
) -> Parity:
    """Write a system for CTranslate2, all of it or nothing, and compare the two before.

    Args:
        system: The trained system. One that computes in another dtype than float32 is
            compared through a float32 copy.
        export_dir: Folder to create.
        decode_hparams: Settings of the search; the export has positions for its
            `extra_length`, and the translations are compared with its beam.
        quantization: Format of the weights, a name of `QUANTIZATIONS`.
        sentences: Sources to compare; by default the first ones of the prepared dev
            text, or of the embedded grammar if it is gone. Those without tokens, or
            with more than the model reads at once, are left out.

    Returns:
        The comparison, which is also in the description of the folder.

    Raises:
        UserError: If CTranslate2 is not installed or cannot compute the model, the two
            differ too much, no sentence is left, or the folder exists or cannot be
            written; or for an ensemble.
        UsageError: If `quantization` is unknown, CTranslate2 does not follow a setting,
            or as for `System.translator`.
    """
    system.check_single("CTranslate2 has no ensembles")
    run = system.run
    check_exportable(run.model, run.hparams, export_dir, quantization)
    system.warn_of_raw_text()
    hparams = with_problem_defaults(
        decode_hparams or DecodeHParams(),
        system.problem,
        system.max_input_length,
        follows_grammar=False,
    )
    check_followed(hparams)
    if sentences is None:
        sentences = comparison_sentences(run.data_dir, system.problem)
    sources = [*map(system.problem.normalize_source, sentences)]
    try:
        with atomic_folder(Path(export_dir)) as folder:
            export = _Export(system, hparams, quantization, folder)
            export.write_weights()
            parity = export.measure(sources)
            parity.check(quantization)
            export.describe(parity)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot write {export_dir}: {reason}.") from error
    return parity


def comparison_sentences(data_dir: str, problem: Problem) -> list[str]:
    """Return the first sources of a run's dev text.

    If the text no longer exists, return English sentences of the embedded grammar,
    which any tokenizer can encode.

    Args:
        data_dir: Folder of the run's prepared data.
        problem: The run's problem.

    Returns:
        At most `COMPARED_SENTENCES` sentences.
    """
    try:
        sources, _ = PreparedData.load(data_dir, problem).raw_text("dev")
    except UserError:
        corpus = features.load("synthetic", "synthetic_corpus")
        sources = [x.english for x in corpus.sentences("dev", COMPARED_SENTENCES)]
    return sources[:COMPARED_SENTENCES]


class _Export:
    """A model for CTranslate2 that is written and compared with the trained one.

    Args:
        system: The trained system.
        hparams: Settings of the search with a beam.
        quantization: Format of the weights.
        folder: Folder to write into.
    """

    def __init__(
        self, system: System, hparams: DecodeHParams, quantization: str, folder: Path
    ) -> None:
        self._system = system
        self._model = _in_float32(system.model)
        self._tokenizers = (system.source_tokenizer, system.target_tokenizer)
        self._hparams = hparams
        self._quantization = quantization
        self._folder = folder
        self._longest = system.max_input_length
        self._positions = position_count(self._longest, hparams.extra_length)

    def write_weights(self) -> None:
        """Write the weights and the vocabularies."""
        # Imports ctranslate2, which is optional.
        from t2t_repro.features.ctranslate2 import ctranslate2_spec

        spec = ctranslate2_spec.model_spec(
            self._system.model, *self._tokenizers, self._positions
        )
        ctranslate2_spec.write_model(spec, str(self._folder), self._quantization)

    def describe(self, parity: Parity) -> None:
        """Write the tokenizers and the description."""
        names = tokenizer_file_names(*self._tokenizers)
        for side, tokenizer in zip(SIDES, self._tokenizers, strict=True):
            tokenizer.save(self._folder / names[side])
        settings = self._hparams.values()
        checkpoint = self._system.checkpoint
        ExportDescription(
            problem=self._system.run.problem,
            hparams_set=self._system.run.hparams_set,
            checkpoint=checkpoint,
            step=step_in_name(checkpoint),
            checkpoint_digest=checkpoint_digest(checkpoint),
            quantization=self._quantization,
            positions=self._positions,
            max_input_length=self._longest,
            tokenizers=names,
            decode_hparams={name: settings[name] for name in _DECODE_HPARAMS},
            parity=dataclasses.asdict(parity),
            versions={
                "t2t_repro": t2t_repro.__version__,
                "ctranslate2": importlib.metadata.version("ctranslate2"),
            },
        ).save(self._folder)

    def measure(self, sentences: Sequence[str]) -> Parity:
        """Translate sentences with both engines and compare.

        Raises:
            UserError: If no sentence has a length that the model reads at once.
        """
        chosen, sources = self._usable(sentences)
        searches, greedy = [], []
        for beam_size in sorted({1, self._hparams.beam_size}):
            ours, theirs = self._translations(chosen, beam_size)
            greedy = greedy or ours
            searches.append(self._compare_searches(sources, ours, theirs, beam_size))
        targets = [[*hypothesis.ids[:-1], EOS_ID] for hypothesis in greedy]
        expected, pad = _log_probabilities(self._model, sources, targets)
        engine = load_engine(self._folder, self._quantization)
        source_tokenizer, target_tokenizer = self._tokenizers
        found = engine.score_batch(
            [source_tokenizer.pieces(ids) for ids in sources],
            # It appends EOS itself.
            [target_tokenizer.pieces(ids[:-1]) for ids in targets],
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

    def _usable(self, sentences: Sequence[str]) -> tuple[list[str], list[list[int]]]:
        """Return the sentences of one piece, and their ids with EOS."""
        longest = longest_piece(self._longest)
        encoded = self._tokenizers[0].encode_batch(list(sentences))
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
        # What is compared is most probable, whatever chooses among hypotheses later.
        hparams = self._hparams.replace(
            beam_size=beam_size,
            return_beams=False,
            prefer_unrepaired=False,
            mbr_scale=0.0,
            mbr_consensus=False,
        )
        engines = (
            Translator(self._model, *self._tokenizers, hparams, self._longest),
            CTranslate2Translator(
                self._folder,
                *self._tokenizers,
                hparams,
                self._longest,
                positions=self._positions,
                quantization=self._quantization,
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
        token_log_probs, _ = _log_probabilities(self._model, sources, targets)
        differences = [
            abs(
                values.sum() / length_penalty(len(values), self._hparams.alpha)
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


def _in_float32(model: keras.Model) -> keras.Model:
    """Return the model, or a copy of it that computes in float32."""
    if model.compute_dtype == "float32":
        return model
    copy = type(model).from_config(model.get_config() | {"dtype": "float32"})
    for variable, value in zip(copy.variables, model.variables, strict=True):
        variable.assign(value)
    return copy


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
        features = {
            INPUTS: _padded(sources[start : start + _ROWS]),
            TARGETS: _padded(rows),
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


def _padded(rows: list[list[int]]) -> np.ndarray:
    # Keras warns of a softmax over one position.
    length = max(2, *map(len, rows))
    batch = np.full((len(rows), length), PAD_ID, np.int32)
    for row, ids in zip(batch, rows, strict=True):
        row[: len(ids)] = ids
    return batch


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
    """How far a CTranslate2 model differs from the trained model.

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
