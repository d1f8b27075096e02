"""A trained system in memory: translate, evaluate, score, show attention, export."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import keras

from t2t_repro import catalogue
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.ctranslate2_engine import check_followed
from t2t_repro.decoding.ensemble import Ensemble, members
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.decoding.text_forms import TextForms
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UsageError, UserError
from t2t_repro.evaluation.branch_weights import replace_branch_weights
from t2t_repro.export.ctranslate2 import Origin, export_ctranslate2
from t2t_repro.export.ctranslate2_figures import Parity
from t2t_repro.export.ctranslate2_folder import check_exportable, position_count
from t2t_repro.export.ctranslate2_parity import ComparedSystem
from t2t_repro.export.limits import MAX_SOURCE_TOKENS
from t2t_repro.export.saved_model import ServedTranslator, export_saved_model
from t2t_repro.runs.checkpoint_choice import choose_checkpoint
from t2t_repro.runs.checkpoint_fit import check_fits
from t2t_repro.runs.comparison_text import comparison_sentences
from t2t_repro.runs.run import Run
from t2t_repro.runs.scoring import PairScore, PairScorer
from t2t_repro.runs.translating import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoints import model_variables, restore
from t2t_repro.visualization.attention import Attention
from t2t_repro.visualization.capture import (
    capture_attention,
    encode_source,
    encode_target,
)

logger = logging.getLogger(__name__)

_OTHER_CHECKPOINT = "Give another checkpoint."


class System(TranslatingSystem):
    """A trained model in memory, with its tokenizers and its problem.

    Args:
        run: Description of the training run.
        problem: The problem that it was trained on.
        model: Model with the weights of `checkpoint`.
        tokenizers: Tokenizers of the inputs and of the targets.
        checkpoint: Path of the checkpoint.
    """

    def __init__(
        self,
        run: Run,
        problem: Problem,
        model: keras.Model,
        tokenizers: tuple[Tokenizer, Tokenizer],
        checkpoint: str,
    ) -> None:
        super().__init__(problem, tokenizers, checkpoint)
        self.run = run
        self.model = model
        self._scorers: dict[DecodeHParams, PairScorer] = {}

    def __repr__(self) -> str:
        sets = f"{self.run.hparams_set}, {self.problem.name}"
        return f"<System {self.checkpoint}, {sets}>"

    @classmethod
    def load(
        cls,
        output_dir: str | Path,
        checkpoint: str | None = None,
        t2t_usr_dir: str | Path | None = None,
    ) -> System:
        """Load a trained system from the folder of its run.

        Args:
            output_dir: Folder of the run.
            checkpoint: "latest", "best", "averaged" or the path of a checkpoint. The
                default is the averaged one if it is as new as the latest, else the
                latest.
            t2t_usr_dir: Folder of the user's package; by default the run's, if
                the user agreed to run its code; see `Run.package`.

        Raises:
            UserError: If the run or the checkpoint is missing or damaged.
        """
        run = Run.load_existing(output_dir)
        run.load_catalogue(t2t_usr_dir)
        path = choose_checkpoint(output_dir, checkpoint)
        tokenizers = run.load_tokenizers(output_dir)
        check_fits(run, output_dir, tokenizers, path)
        model = run.build_model(*tokenizers)
        restore(model_variables(model), path, advice=_OTHER_CHECKPOINT)
        problem = catalogue.problem(run.problem).with_bleu_tokenizer(run.bleu_tokenizer)
        return cls(run, problem, model, tokenizers, path)

    @property
    def max_input_length(self) -> int:
        return self.run.hparams.max_length

    @property
    def data_dir(self) -> str | None:
        return self.run.data_dir

    def _new_translator(self, hparams: DecodeHParams) -> Translator:
        return Translator(
            self.model,
            self.source_tokenizer,
            self.target_tokenizer,
            hparams,
            self.max_input_length,
            forms=TextForms.of(self.problem),
            grammar=self.grammar,
        )

    def scorer(self, decode_hparams: DecodeHParams | None = None) -> PairScorer:
        """Return a scorer of given pairs; equal settings share one.

        Raises:
            UsageError: See `with_problem_defaults`.
        """
        hparams = self.with_problem_defaults(decode_hparams or DecodeHParams())
        if hparams not in self._scorers:
            self._scorers[hparams] = PairScorer(
                self.model,
                (self.source_tokenizer, self.target_tokenizer),
                self.problem,
                hparams,
                self.max_input_length,
            )
        return self._scorers[hparams]

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        decode_hparams: DecodeHParams | None = None,
        advance: Callable[[int], object] = lambda count: None,
    ) -> list[PairScore]:
        """Return the log-probability of each target given its source.

        See `PairScorer.score`, which `scorer` has for scores one by one;
        `decode_hparams` has the `alpha` of the length penalty.
        """
        return list(self.scorer(decode_hparams).score(sources, targets, advance))

    def attention(
        self,
        source: str,
        target: str | None = None,
        decode_hparams: DecodeHParams | None = None,
    ) -> Attention:
        """Return every attention weight for a source and its translation.

        Args:
            source: A sentence.
            target: Its translation in the form of the problem's targets; by default the
                system's own.
            decode_hparams: Settings of the search for the system's translation.

        Raises:
            UserError: If a text has no words, is longer than the model's `max_length`,
                or has a token that the model cannot write; or for an ensemble.
        """
        self._check_single("attention shows one model")
        tokenizers = (self.source_tokenizer, self.target_tokenizer)
        longest = self.max_input_length
        text = self.problem.normalize_source(source)
        source_ids = encode_source(self.source_tokenizer, text, longest)
        if target is None:
            target_ids = self.translator(decode_hparams).translate([source])[0][0].ids
        else:
            written = self.problem.encode_target(target)
            target_ids = encode_target(self.target_tokenizer, written, longest)
        languages = (self.problem.source_language, self.problem.target_language)
        return capture_attention(
            self.model, tokenizers, source_ids, target_ids, languages=languages
        )

    def _check_single(self, reason: str) -> None:
        if isinstance(self.model, Ensemble):
            raise UserError(
                f"received an ensemble of {len(self.model.models)} models, expected "
                f"one model: {reason}. Average the checkpoints of a run instead."
            )

    def replace_branch_weights(self, mode: str, seed: int) -> None:
        """Replace kappa and alpha of a Weighted Transformer; see `evaluation`."""
        for model in members(self.model):
            replace_branch_weights(model, mode, seed)

    def export(
        self,
        export_dir: str | Path,
        decode_hparams: DecodeHParams | None = None,
        max_source_tokens: int = MAX_SOURCE_TOKENS,
    ) -> Path:
        """Write the system as a SavedModel: strings in, translations and scores out.

        That of an ensemble has no signature `attention`.

        Args:
            export_dir: Folder to create.
            decode_hparams: Settings of the search.
            max_source_tokens: Tokens of a source to translate, rounded up to whole
                pieces of `max_length`; the rest is cut, and the output "truncated" says
                so.

        Raises:
            UserError: If the folder exists or cannot be written.
            UsageError: If the settings ask for random translations or minimum Bayes
                risk, or `max_source_tokens` is less than 1.
        """
        hparams = self.with_problem_defaults(decode_hparams or DecodeHParams())
        _check_search_is_exportable(hparams)
        self._warn_of_raw_text()
        served = ServedTranslator(
            self.model,
            self.source_tokenizer,
            self.target_tokenizer,
            hparams,
            self.max_input_length,
            max_source_tokens,
            self.grammar,
        )
        export_saved_model(served, export_dir)
        return Path(export_dir)

    def export_ctranslate2(
        self,
        export_dir: str | Path,
        decode_hparams: DecodeHParams | None = None,
        *,
        quantization: str = "float32",
        sentences: Sequence[str] | None = None,
    ) -> Parity:
        """Write the system for CTranslate2, and compare the two before.

        Args:
            export_dir: Folder to create.
            decode_hparams: Settings of the search; the export has positions for its
                `extra_length`, and the translations are compared with its beam.
            quantization: Format of the weights, a name of
                `ctranslate2_variants.QUANTIZATIONS`.
            sentences: Sources to compare; by default the first ones of the prepared dev
                text, or of the embedded grammar if it is gone.

        Returns:
            The comparison.

        Raises:
            UserError: If CTranslate2 is not installed or cannot compute the model, the
                two differ too much, or the folder exists or cannot be written; or for
                an ensemble.
            UsageError: If `quantization` is unknown, CTranslate2 does not follow a
                setting, or as for `translator`.
        """
        self._check_single("CTranslate2 has no ensembles")
        check_exportable(self.run.model, self.run.hparams, export_dir, quantization)
        self._warn_of_raw_text()
        longest = self.max_input_length
        hparams = with_problem_defaults(
            decode_hparams or DecodeHParams(),
            self.problem,
            longest,
            follows_grammar=False,
        )
        check_followed(hparams)
        if sentences is None:
            sentences = comparison_sentences(self.run.data_dir, self.problem)
        return export_ctranslate2(
            ComparedSystem(
                self.model,
                self.source_tokenizer,
                self.target_tokenizer,
                hparams,
                longest,
                position_count(longest, hparams.extra_length),
                quantization,
            ),
            Origin(self.run.problem, self.run.hparams_set, self.checkpoint),
            export_dir,
            [*map(self.problem.normalize_source, sentences)],
        )

    def _warn_of_raw_text(self) -> None:
        """Log what `t2t decode` does to the text and an export does not."""
        name = self.problem.name
        if type(self.problem).normalize_source is not Problem.normalize_source:
            logger.warning(
                "the export reads sources as the training text of %s has them: call "
                "the problem's `normalize_source` before it, as `t2t decode` does",
                name,
            )
        if not self.problem.writes_targets:
            logger.warning(
                "the export returns the model's raw output, which `t2t decode` turns "
                "into the outputs of %s",
                name,
            )


def _check_search_is_exportable(hparams: DecodeHParams) -> None:
    """Refuse settings of the search that an export cannot follow.

    Raises:
        UsageError: If there is one.
    """
    if hparams.samples:
        raise UsageError(
            f"{hparams.argument()}: received sampling_method=random, expected argmax: "
            "an export does not draw at random."
        )
    if hparams.mbr_scale:
        raise UsageError(
            f"{hparams.argument()}: received mbr_scale={hparams.mbr_scale}, expected "
            "0: an export cannot compare the texts of hypotheses."
        )
