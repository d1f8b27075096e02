"""The conversion of a run's checkpoint for CTranslate2, made once and kept.

Imports TensorFlow only to convert.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from contextlib import suppress
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    check_followed,
    import_ctranslate2,
)
from t2t_repro.features.ctranslate2.export_folder import (
    DESCRIPTION_FILE,
    ExportDescription,
    checkpoint_digest,
    position_count,
)
from t2t_repro.features.ctranslate2.spec_variants import (
    check_expressible,
    check_quantization,
)
from t2t_repro.files import INCOMPLETE, current_folder, folder_lock, remove_unless_held
from t2t_repro.runs.run import Run
from t2t_repro.runs.run_checkpoints import choose_checkpoint
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.training.checkpoint_paths import run_checkpoints

logger = logging.getLogger(__name__)


FOLDER = "ctranslate2"
_LOCK = ".lock"


@dataclasses.dataclass(frozen=True)
class Conversion:
    """A folder for the conversion of one checkpoint of a run.

    Its name has a digest of the checkpoint's content, the format of the weights and the
    number of positions, so a folder is replaced only if its description differs.

    Attributes:
        output_dir: Folder of the run.
        checkpoint: Path of the checkpoint.
        digest: Digest of the checkpoint's content.
        t2t_usr_dir: Folder of the user's package, or None.
        quantization: Format of the weights.
        hparams: Settings of the search for which the model must have enough positions.
        folder: Folder of the conversion, which may not exist yet.
        data_dir: Folder of the prepared data of the training run, or None.
    """

    output_dir: str
    checkpoint: str
    digest: str
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

        Args:
            output_dir: Folder of the run.
            checkpoint: See `System.load`.
            t2t_usr_dir: See `System.load`.
            quantization: Format of the weights.
            decode_hparams: Settings of the search.

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
        digest = checkpoint_digest(path)
        name = f"{Path(path).name}-{digest[:12]}"
        folder = Path(output_dir) / FOLDER / f"{name}-{quantization}-{positions}"
        return cls(
            output_dir=str(output_dir),
            checkpoint=path,
            digest=digest,
            t2t_usr_dir=package,
            quantization=quantization,
            hparams=hparams,
            folder=folder,
            data_dir=run.data_dir,
        )

    def is_done(self) -> bool:
        """Return whether the folder has a comparison of this very checkpoint.

        A folder that cannot be read counts as done: loading it reports the error.
        """
        folder = current_folder(self.folder)
        if not (folder / DESCRIPTION_FILE).exists():
            return False
        try:
            found = ExportDescription.load(folder)
        except UserError:
            return True
        made_of = (found.checkpoint_digest, found.quantization)
        return made_of == (self.digest, self.quantization) and bool(found.files)

    def make(self) -> None:
        """Convert the checkpoint if it is not done, and log the comparison.

        Then remove older conversions; see `prune_conversions`.

        Raises:
            UserError: If the conversion differs too much from the trained model, the
                folder cannot be written, or another process is converting.
        """
        try:
            with folder_lock(self.folder.parent, _LOCK, "converting a checkpoint"):
                if not self.is_done():
                    # One of an earlier version, or of another checkpoint
                    remove_unless_held(self.folder, DESCRIPTION_FILE)
                    self._convert()
                    prune_conversions(self.output_dir, self.folder)
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


def prune_conversions(output_dir: str | Path, new: Path) -> None:
    """Keep the newest conversion of each quantization, and remove the others.

    One whose checkpoint no longer exists is removed, too. One that another process
    uses, or that cannot be read, is left alone. An error of the file system is logged.

    Args:
        output_dir: Folder of the run.
        new: Conversion that was just made, which is the newest. No other process may be
            writing into its folder.
    """
    try:
        _prune(output_dir, new)
    except OSError as error:
        reason = error.strerror or error
        logger.warning("cannot remove older conversions in %s: %s", new.parent, reason)


def _prune(output_dir: str | Path, new: Path) -> None:
    found = _conversions(new.parent)
    kept = {new}
    kinds = {description.quantization for description in found.values()}
    for kind in kinds - {found[new].quantization}:
        same = [path for path in found if found[path].quantization == kind]
        newest = max(same, key=_time_of)
        if _checkpoint_exists(output_dir, found[newest]):
            kept.add(newest)
    for path in found.keys() - kept:
        if remove_unless_held(path, DESCRIPTION_FILE):
            logger.info("removed the older conversion %s", path)
    for left in new.parent.glob(f"*{INCOMPLETE}"):
        shutil.rmtree(left, ignore_errors=True)


def _conversions(folder: Path) -> dict[Path, ExportDescription]:
    """Return the descriptions of the conversions that can be read."""
    found = {}
    for path in folder.glob(f"*/{DESCRIPTION_FILE}"):
        if path.parent.suffix != INCOMPLETE:
            with suppress(UserError):
                found[path.parent] = ExportDescription.load(path.parent)
    return found


def _time_of(path: Path) -> int:
    return (path / DESCRIPTION_FILE).stat().st_mtime_ns


def _checkpoint_exists(output_dir: str | Path, conversion: ExportDescription) -> bool:
    """Return whether the run, or the recorded path, has the converted checkpoint."""
    for path in [*run_checkpoints(output_dir), conversion.checkpoint]:
        with suppress(UserError):
            if checkpoint_digest(path) == conversion.checkpoint_digest:
                return True
    return False
