"""A trained system that translates with CTranslate2: an export, or a conversion.

A conversion of a run's checkpoint is made once and kept. Imports TensorFlow only to
convert.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
import shutil
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.data.text_files import identity
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_limits import (
    check_expressible,
    check_quantization,
)
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    CTranslate2Translator,
    check_followed,
    import_ctranslate2,
    load_engine,
    needed_positions,
)
from t2t_repro.files import (
    atomic_write,
    check_new_folder,
    description_text,
    folder_lock,
    load_description,
    path_inside,
)
from t2t_repro.runs.run import Run
from t2t_repro.runs.run_checkpoints import choose_checkpoint
from t2t_repro.runs.translating_system import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.text.tokenizer_files import load_tokenizers

logger = logging.getLogger(__name__)


DESCRIPTION_FILE = "t2t_repro.json"
FORMAT = 1

# Positions of every export, unless the search needs more: 2 MB of a base model.
MIN_POSITIONS = 1024


@dataclasses.dataclass(frozen=True)
class ExportDescription:
    """The content of `t2t_repro.json` beside a CTranslate2 model.

    Attributes:
        problem: Name of the problem, including `_rev`.
        hparams_set: Name of the hparams set of the training run.
        checkpoint: Path of the checkpoint.
        step: Number of updates of the checkpoint; None if its name does not tell it.
        checkpoint_digest: See `checkpoint_digest`.
        quantization: Format of the weights.
        positions: Longest source or translation in tokens, including EOS.
        max_input_length: Longest source in tokens, including EOS, that is translated in
            one piece.
        tokenizers: File names, in the folder, of "inputs" and "targets".
        decode_hparams: `beam_size`, `alpha` and `extra_length` of the comparison.
        parity: Figures of the comparison with the trained model; see `Parity`.
        versions: Versions of the software that wrote the folder.
        files: Bytes and sha256 of every other file of the folder, by its name.
            They tie the model to the comparison.
        format: Version of the file's format.
    """

    problem: str
    hparams_set: str
    checkpoint: str
    step: int | None
    checkpoint_digest: str
    quantization: str
    positions: int
    max_input_length: int
    tokenizers: dict[str, str]
    decode_hparams: dict[str, Any]
    parity: dict[str, Any]
    versions: dict[str, str]
    files: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    format: int = FORMAT

    def save(self, folder: str | Path) -> None:
        """Write the file into the folder of the export, after all its other files."""
        files = {path.name: identity(path) for path in sorted(Path(folder).iterdir())}
        text = description_text(dataclasses.asdict(self) | {"files": files})
        atomic_write(Path(folder) / DESCRIPTION_FILE, text)

    @classmethod
    def load(cls, folder: str | Path) -> ExportDescription:
        """Read the description of an export.

        Raises:
            UserError: If the description is missing, unreadable, damaged or of another
                version.
        """
        path = Path(folder) / DESCRIPTION_FILE
        try:
            found = load_description(
                path,
                lambda values: cls(**values),
                expected_format=FORMAT,
                advice="export the system again.",
            )
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"cannot read {path}: {reason}.") from error
        if found is None:
            raise UserError(
                f"received export_dir={folder}, expected a folder with "
                f"{DESCRIPTION_FILE} in it: `t2t export --format ctranslate2` writes "
                "one."
            )
        return found

    def check_files(self, folder: str | Path) -> None:
        """Refuse a folder whose files have changed since they were compared.

        Raises:
            UserError: If a file is missing or has changed.
        """
        for name, expected in self.files.items():
            path = path_inside(folder, name)
            if not path.is_file() or identity(path) != expected:
                raise UserError(
                    f"{path} is missing or has changed since it was compared with the "
                    f"trained model: remove {folder}, and export or convert again."
                )


def check_exportable(
    model: str, hparams: HParams, export_dir: str | Path, quantization: str
) -> None:
    """Refuse an export that cannot succeed, before TensorFlow is imported.

    Args:
        model: Name of the model in the registry.
        hparams: Its hparams.
        export_dir: Folder to create.
        quantization: Format of the weights.

    Raises:
        UserError: If CTranslate2 cannot compute the model or is not installed, or the
            folder exists.
        UsageError: If `quantization` is unknown.
    """
    check_quantization(quantization)
    check_expressible(model, hparams)
    check_new_folder(export_dir)
    import_ctranslate2()


def position_count(max_input_length: int, extra_length: int) -> int:
    """Return the number of positions to export; see `needed_positions`."""
    return max(MIN_POSITIONS, needed_positions(max_input_length, extra_length))


def checkpoint_digest(checkpoint: str) -> str:
    """Return a digest of a checkpoint's content.

    The index of a checkpoint has a checksum of every tensor, so its digest changes with
    any of them.

    Args:
        checkpoint: Path of the checkpoint, without `.index`.

    Raises:
        UserError: If it cannot be read.
    """
    path = Path(f"{checkpoint}.index")
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error


FOLDER = "ctranslate2"
_LOCK = ".lock"
_DIGITS = 12  # digits of a digest in the name of a folder


@dataclasses.dataclass(frozen=True)
class Conversion:
    """A folder for the conversion of one checkpoint of a run.

    Its name has a digest of the checkpoint's content, the format of the weights and the
    number of positions.

    Attributes:
        output_dir: Folder of the run.
        checkpoint: Path of the checkpoint.
        t2t_usr_dir: Folder of the user's package, or None.
        quantization: Format of the weights.
        hparams: Settings of the search for which the model must have enough positions.
        folder: Folder of the conversion, which may not exist yet.
        data_dir: Folder of the prepared data of the training run, or None.
    """

    output_dir: str
    checkpoint: str
    t2t_usr_dir: str | None
    quantization: str
    hparams: DecodeHParams
    folder: Path
    data_dir: str | None

    @classmethod
    def plan(
        cls,
        output_dir: str | Path,
        checkpoint: str | None = None,
        t2t_usr_dir: str | Path | None = None,
        *,
        quantization: str = "float32",
        decode_hparams: DecodeHParams | None = None,
    ) -> Conversion:
        """Choose the checkpoint and the folder.

        For the arguments, see `CTranslate2System.load`.

        Raises:
            UserError: If the run or the checkpoint is missing, or CTranslate2 cannot
                compute the model or is not installed.
            UsageError: If a setting has no effect or cannot work.
        """
        run = Run.load_existing(output_dir)
        check_quantization(quantization)
        check_expressible(run.model, run.hparams)
        import_ctranslate2()
        package = run.package(None if t2t_usr_dir is None else str(t2t_usr_dir))
        catalogue.load(package)
        longest = run.hparams.max_length
        hparams = with_problem_defaults(
            decode_hparams or DecodeHParams(),
            catalogue.problem(run.problem),
            longest,
            follows_grammar=False,
        )
        check_followed(hparams)
        path = choose_checkpoint(output_dir, checkpoint)
        positions = position_count(longest, hparams.extra_length)
        name = f"{Path(path).name}-{checkpoint_digest(path)[:_DIGITS]}"
        folder = Path(output_dir) / FOLDER / f"{name}-{quantization}-{positions}"
        return cls(
            output_dir=str(output_dir),
            checkpoint=path,
            t2t_usr_dir=package,
            quantization=quantization,
            hparams=hparams,
            folder=folder,
            data_dir=run.data_dir or None,
        )

    def is_done(self) -> bool:
        """Return whether the folder exists with its comparison.

        A comparison that cannot be read counts: loading it reports the error.
        """
        return (self.folder / DESCRIPTION_FILE).exists()

    def make(self) -> None:
        """Convert the checkpoint if it is not done, and log the comparison.

        Then remove older conversions with the same format of the weights.

        Raises:
            UserError: If the conversion differs too much from the trained model, the
                folder cannot be written, or another process is converting.
        """
        try:
            with folder_lock(self.folder.parent, _LOCK, "converting a checkpoint"):
                if not self.is_done():
                    self._convert()
                    self._remove_older()
        except OSError as error:
            raise UserError(
                f"cannot write {self.folder.parent}: {error.strerror or error}; "
                "`t2t export --format ctranslate2` writes a conversion elsewhere, and "
                "`t2t decode --engine ctranslate2 --export_dir DIR` uses it."
            ) from error

    def _convert(self) -> None:
        from t2t_repro.runs.system import System

        logger.info(
            "converting %s for CTranslate2, once, and comparing translations: %s",
            self.checkpoint,
            self.folder,
        )
        system = System.load(self.output_dir, self.checkpoint, self.t2t_usr_dir)
        parity = system.export_ctranslate2(
            self.folder, self.hparams, quantization=self.quantization
        )
        for line in parity.lines():
            logger.info("%s", line)

    def _remove_older(self) -> None:
        names = f"*-{'?' * _DIGITS}-{self.quantization}-*"
        for older in self.folder.parent.glob(names):
            if older != self.folder:
                logger.info("removing the older conversion %s", older)
                shutil.rmtree(older, ignore_errors=True)


class CTranslate2System(TranslatingSystem):
    """A CTranslate2 model with its tokenizers and its problem.

    It translates like `System`, but knows neither TensorFlow nor the Keras model.

    Args:
        export_dir: Folder that `System.export_ctranslate2` wrote.
        t2t_usr_dir: Folder of the package that registers the problem, if any.
        data_dir: Folder of the prepared data of the training run, if it is known.

    Attributes:
        num_threads: Number of batches that are translated at the same time, on one core
            each; None = the number of cores that the process may use. The first
            translator reads it and loads the model, which all translators share.

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
        self.num_threads: int | None = None
        self.export_dir = Path(export_dir)
        self.description = ExportDescription.load(self.export_dir)
        self.description.check_files(self.export_dir)
        catalogue.load(t2t_usr_dir)
        super().__init__(
            catalogue.problem(self.description.problem),
            load_tokenizers(self.export_dir, self.description.tokenizers),
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
        if not conversion.is_done():
            conversion.make()
        return cls(conversion.folder, conversion.t2t_usr_dir, conversion.data_dir)

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

    @functools.cached_property
    def _engine(self) -> Any:
        quantization = self.description.quantization
        return load_engine(self.export_dir, quantization, self.num_threads)

    def _new_translator(self, hparams: DecodeHParams) -> CTranslate2Translator:
        return CTranslate2Translator(
            self._engine,
            self.source_tokenizer,
            self.target_tokenizer,
            hparams,
            self.max_input_length,
            positions=self.description.positions,
            problem=self.problem,
        )
