"""The folder of a CTranslate2 export and its description; imports no TensorFlow."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from t2t_repro.data.text_files import identity
from t2t_repro.description_file import description_text, load_description
from t2t_repro.errors import UserError
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    import_ctranslate2,
    needed_positions,
)
from t2t_repro.features.ctranslate2.spec_variants import (
    check_expressible,
    check_quantization,
)
from t2t_repro.files import atomic_write
from t2t_repro.local_paths import check_new_folder, path_inside
from t2t_repro.settings.hparams import HParams
from t2t_repro.text.tokenizer import Tokenizer
from t2t_repro.text.tokenizer_files import load_tokenizers

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
        files: Bytes and sha256 of every other file of the folder, by its name; empty if
            an earlier version wrote it. They tie the model to the comparison.
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
        """Write the file into the folder of the export, whose other files are there."""
        files = {path.name: identity(path) for path in sorted(Path(folder).iterdir())}
        text = description_text(dataclasses.asdict(self) | {"files": files})
        atomic_write(Path(folder) / DESCRIPTION_FILE, text)

    @classmethod
    def load(cls, folder: str | Path) -> ExportDescription:
        """Read the description of an export.

        Raises:
            UserError: If there is none, it cannot be read, it is damaged, or another
                version wrote it.
        """
        path = Path(folder) / DESCRIPTION_FILE
        try:
            found = load_description(
                path,
                lambda values: cls(**values),
                expected_format=FORMAT,
                advice="export the system again.",
            )
        except FileNotFoundError:
            # Another process removed it just now.
            found = None
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

    def load_tokenizers(self, folder: str | Path) -> tuple[Tokenizer, Tokenizer]:
        """Read the tokenizers of inputs and targets from the folder."""
        return load_tokenizers(folder, self.tokenizers)


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
