"""A trained system that translates with CTranslate2; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.ctranslate2_engine import (
    CTranslate2Translator,
)
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.decoding.sentences import Hypothesis
from t2t_repro.export.ctranslate2_folder import (
    ExportDescription,
)
from t2t_repro.files import current_folder
from t2t_repro.runs.conversion import Conversion
from t2t_repro.settings.decode_hparams import DecodeHParams


class CTranslate2System:
    """A CTranslate2 model with its tokenizers and its problem.

    It translates like `System`, but knows neither TensorFlow nor the Keras model.

    Args:
        export_dir: Folder that `System.export_ctranslate2` wrote.
        t2t_usr_dir: Folder of the package that registers the problem, if any.

    Raises:
        UserError: If the folder has no export, or it is damaged.
    """

    def __init__(
        self, export_dir: str | Path, t2t_usr_dir: str | Path | None = None
    ) -> None:
        self.export_dir = current_folder(Path(export_dir))
        self.description = ExportDescription.load(self.export_dir)
        catalogue.load(t2t_usr_dir)
        self.problem: Problem = catalogue.problem(self.description.problem)
        tokenizers = self.description.load_tokenizers(self.export_dir)
        self.source_tokenizer, self.target_tokenizer = tokenizers
        self._translators: dict[DecodeHParams, CTranslate2Translator] = {}

    @classmethod
    def load(
        cls,
        output_dir: str | Path,
        checkpoint: str | None = None,
        t2t_usr_dir: str | Path | None = None,
        *,
        quantization: str = "float32",
        decode_hparams: DecodeHParams | None = None,
    ) -> CTranslate2System:
        """Load the conversion of a run's checkpoint, and make it first if needed.

        Args:
            output_dir: Folder of the run.
            checkpoint: See `System.load`.
            t2t_usr_dir: See `System.load`.
            quantization: Format of the weights.
            decode_hparams: Settings of the search for which the model must have enough
                positions.

        Raises:
            UserError: See `Conversion`.
            UsageError: See `Conversion`.
        """
        conversion = Conversion.plan(
            output_dir,
            checkpoint,
            t2t_usr_dir,
            quantization=quantization,
            decode_hparams=decode_hparams,
        )
        if not conversion.is_done():
            conversion.make()
        return cls(conversion.folder, conversion.t2t_usr_dir)

    @property
    def max_input_length(self) -> int:
        """Longest source that the model reads at once, in tokens with EOS."""
        return self.description.max_input_length

    def with_problem_defaults(self, hparams: DecodeHParams) -> DecodeHParams:
        """Use the problem's defaults for settings that the user did not give.

        Raises:
            UsageError: If a given setting would have no effect or cannot work.
        """
        longest = self.description.max_input_length
        return with_problem_defaults(hparams, self.problem, longest)

    def translator(
        self, decode_hparams: DecodeHParams | None = None
    ) -> CTranslate2Translator:
        """Return a translator of the model; equal settings share one.

        Raises:
            UsageError: See `with_problem_defaults` and `CTranslate2Translator`.
            UserError: See `CTranslate2Translator`.
        """
        hparams = self.with_problem_defaults(decode_hparams or DecodeHParams())
        if hparams not in self._translators:
            self._translators[hparams] = CTranslate2Translator(
                self.export_dir,
                self.source_tokenizer,
                self.target_tokenizer,
                hparams,
                self.description.max_input_length,
                positions=self.description.positions,
                quantization=self.description.quantization,
                normalize_source=self.problem.normalize_source,
                postprocess=self.problem.postprocess,
            )
        return self._translators[hparams]

    def translate(
        self, sentences: Sequence[str], decode_hparams: DecodeHParams | None = None
    ) -> list[str]:
        """Return the best translation of each sentence."""
        translated = self.translator(decode_hparams).translate(sentences)
        return [hypotheses[0].text for hypotheses in translated]

    def warm_up(self, decode_hparams: DecodeHParams | None = None) -> None:
        """Load the engine, which happens before the first translation of a process."""
        self.translator(decode_hparams).translate(["."])

    def hypotheses(
        self,
        sentences: Sequence[str],
        decode_hparams: DecodeHParams | None = None,
        advance: Callable[[int], object] = lambda count: None,
        *,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> Iterator[list[Hypothesis]]:
        """Yield the hypotheses of each sentence; see `System.hypotheses`.

        Raises:
            UsageError: If there are prefixes, which this engine does not follow.
        """
        translator = self.translator(decode_hparams)
        return translator.stream(sentences, advance, prefixes=prefixes, first=first)
