"""A trained system in memory: translate, evaluate, score, show attention, export."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import keras

from t2t_repro import catalogue, features
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.translator import TracedSearches, Translator, members
from t2t_repro.errors import UserError
from t2t_repro.recently_used import RecentlyUsed
from t2t_repro.runs.branch_weights import replace_branch_weights
from t2t_repro.runs.run import Run
from t2t_repro.runs.run_checkpoints import check_fits, choose_checkpoint
from t2t_repro.runs.scoring import PairScore, PairScorer
from t2t_repro.runs.translating_system import MAX_TRANSLATORS, TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoints import model_variables, restore

if TYPE_CHECKING:
    from t2t_repro.features.attention_view.sentence_attention import Attention
    from t2t_repro.features.ctranslate2.ctranslate2_parity import Parity

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
        self._searches = TracedSearches(model)
        self._scorers = RecentlyUsed[PairScorer](MAX_TRANSLATORS)

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
        return cls.of_run(run, output_dir, choose_checkpoint(output_dir, checkpoint))

    @classmethod
    def of_run(cls, run: Run, output_dir: str | Path, checkpoint: str) -> System:
        """Load the system of a run whose description and checkpoint are known.

        Args:
            run: Description of the run; its package is loaded.
            output_dir: Folder of the run.
            checkpoint: Path of the checkpoint.

        Raises:
            UserError: If a file of the run is missing or damaged.
        """
        tokenizers = run.load_tokenizers(output_dir)
        check_fits(run, output_dir, tokenizers, checkpoint)
        model = run.build_model(*tokenizers)
        restore(model_variables(model), checkpoint, advice=_OTHER_CHECKPOINT)
        problem = catalogue.problem(run.problem).with_bleu_tokenizer(run.bleu_tokenizer)
        return cls(run, problem, model, tokenizers, checkpoint)

    @property
    def max_input_length(self) -> int:
        return self.run.hparams.max_length

    @property
    def data_dir(self) -> str | None:
        return self.run.data_dir or None

    def _new_translator(self, hparams: DecodeHParams) -> Translator:
        return Translator(
            self.model,
            self.source_tokenizer,
            self.target_tokenizer,
            hparams,
            self.max_input_length,
            problem=self.problem,
            searches=self._searches,
        )

    def scorer(self, decode_hparams: DecodeHParams | None = None) -> PairScorer:
        """Return a scorer of given pairs; equal settings share one.

        Raises:
            UsageError: See `with_problem_defaults`.
        """
        hparams = self.with_problem_defaults(decode_hparams or DecodeHParams())
        return self._scorers.get(
            hparams,
            lambda: PairScorer(
                self.model,
                (self.source_tokenizer, self.target_tokenizer),
                self.problem,
                hparams,
                self.max_input_length,
            ),
        )

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        decode_hparams: DecodeHParams | None = None,
        advance: Callable[[int], object] = lambda count: None,
    ) -> list[PairScore]:
        """Return the log-probability of each target given its source.

        See `PairScorer.score`; the `scorer` yields one by one. `decode_hparams` has
        the `alpha` of the length penalty.
        """
        return list(self.scorer(decode_hparams).score(sources, targets, advance))

    def attention(
        self,
        source: str,
        target: str | None = None,
        decode_hparams: DecodeHParams | None = None,
    ) -> Attention:
        """Return every attention weight; see `attention_view.capture.attention_of`."""
        capture = features.load("attention_view", "capture")
        return capture.attention_of(self, source, target, decode_hparams)

    def check_single(self, reason: str) -> None:
        """Refuse an ensemble.

        Args:
            reason: Why one model is expected, for the message.

        Raises:
            UserError: If the system is an ensemble.
        """
        models = members(self.model)
        if len(models) > 1:
            raise UserError(
                f"received an ensemble of {len(models)} models, expected "
                f"one model: {reason}. Average the checkpoints of a run instead."
            )

    def replace_branch_weights(self, mode: str, seed: int) -> None:
        """Replace kappa and alpha; see the function of the same name."""
        for model in members(self.model):
            replace_branch_weights(model, mode, seed)

    def export(
        self,
        export_dir: str | Path,
        decode_hparams: DecodeHParams | None = None,
        max_source_tokens: int | None = None,
    ) -> Path:
        """Write a SavedModel; see `features.saved_model.saved_model_export`."""
        exporter = features.load("saved_model", "saved_model_export")
        return exporter.export_system(
            self, export_dir, decode_hparams, max_source_tokens
        )

    def export_ctranslate2(
        self,
        export_dir: str | Path,
        decode_hparams: DecodeHParams | None = None,
        *,
        quantization: str = "float32",
        sentences: Sequence[str] | None = None,
    ) -> Parity:
        """Write a CTranslate2 model; see `features.ctranslate2.ctranslate2_export`."""
        exporter = features.load("ctranslate2", "ctranslate2_export")
        return exporter.export_system(
            self,
            export_dir,
            decode_hparams,
            quantization=quantization,
            sentences=sentences,
        )

    def warn_of_raw_text(self) -> None:
        """Log the processing of text by `t2t decode` that an export leaves out."""
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
