"""A trained system that translates with CTranslate2; imports no TensorFlow."""

from __future__ import annotations

import weakref
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.conversion import Conversion
from t2t_repro.features.ctranslate2.ctranslate2_translator import CTranslate2Translator
from t2t_repro.features.ctranslate2.export_folder import (
    DESCRIPTION_FILE,
    ExportDescription,
)
from t2t_repro.files import current_folder, hold_file
from t2t_repro.runs.translating import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams


class CTranslate2System(TranslatingSystem):
    """A CTranslate2 model with its tokenizers and its problem.

    It translates like `System`, but knows neither TensorFlow nor the Keras model.

    Args:
        export_dir: Folder that `System.export_ctranslate2` wrote.
        t2t_usr_dir: Folder of the package that registers the problem, if any.
        data_dir: Folder of the prepared data of the training run, if it is known.

    Raises:
        UserError: If the folder has no export, or it is damaged or has changed.
    """

    follows_grammar = False

    def __init__(
        self,
        export_dir: str | Path,
        t2t_usr_dir: str | Path | None = None,
        data_dir: str | Path | None = None,
    ) -> None:
        self.export_dir = current_folder(Path(export_dir))
        # The model is read later, so no other process may remove the folder.
        release = hold_file(self.export_dir / DESCRIPTION_FILE)
        weakref.finalize(self, release)
        self.description = ExportDescription.load(self.export_dir)
        self.description.check_files(self.export_dir)
        catalogue.load(t2t_usr_dir)
        super().__init__(
            catalogue.problem(self.description.problem),
            self.description.load_tokenizers(self.export_dir),
            self.description.checkpoint,
        )
        self._data_dir = None if data_dir is None else str(data_dir)

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
        return cls.from_conversion(
            Conversion.plan(
                output_dir,
                checkpoint,
                t2t_usr_dir,
                quantization=quantization,
                decode_hparams=decode_hparams,
            )
        )

    @classmethod
    def from_conversion(cls, conversion: Conversion) -> CTranslate2System:
        """Load a planned conversion, and make it first if needed.

        Raises:
            UserError: If it cannot be made or read.
        """
        while True:
            if not conversion.is_done():
                conversion.make()
            try:
                return cls(
                    conversion.folder, conversion.t2t_usr_dir, conversion.data_dir
                )
            except UserError:
                if conversion.is_done():
                    raise
                # Another process made a newer one, and removed this one before it was
                # held.

    @property
    def engine_report(self) -> dict[str, str]:
        quantization = self.description.quantization
        return {"engine": "ctranslate2", "quantization": quantization}

    @property
    def max_input_length(self) -> int:
        return self.description.max_input_length

    @property
    def data_dir(self) -> str | None:
        return self._data_dir

    def _new_translator(self, hparams: DecodeHParams) -> CTranslate2Translator:
        return CTranslate2Translator(
            self.export_dir,
            self.source_tokenizer,
            self.target_tokenizer,
            hparams,
            self.max_input_length,
            positions=self.description.positions,
            quantization=self.description.quantization,
            problem=self.problem,
        )
