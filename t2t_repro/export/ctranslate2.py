"""Write a trained system for CTranslate2, after comparing it with the trained model.

A program needs the packages `ctranslate2` and `sentencepiece`, and nothing of this one;
docs/serving_ctranslate2.md has an example.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import t2t_repro
from t2t_repro.decoding.ctranslate2_engine import import_ctranslate2
from t2t_repro.errors import UserError
from t2t_repro.export.ctranslate2_figures import Parity
from t2t_repro.export.ctranslate2_folder import ExportDescription, checkpoint_digest
from t2t_repro.export.ctranslate2_parity import (
    ComparedSystem,
    measure_parity,
)
from t2t_repro.files import atomic_folder
from t2t_repro.text.tokenizer_files import SIDES, tokenizer_file_names
from t2t_repro.training.checkpoint_paths import step_in_name

_DECODE_HPARAMS = ("beam_size", "alpha", "extra_length")


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the weights of an export come from.

    Attributes:
        problem: Name of the problem, including `_rev`.
        hparams_set: Name of the hparams set.
        checkpoint: Path of the checkpoint.
    """

    problem: str
    hparams_set: str
    checkpoint: str


def export_ctranslate2(
    system: ComparedSystem,
    origin: Origin,
    export_dir: str | Path,
    sentences: Sequence[str],
) -> Parity:
    """Write a CTranslate2 model, all of it or nothing.

    Args:
        system: The trained system, which `check_expressible` accepts.
        origin: Where the weights come from.
        export_dir: Folder to create.
        sentences: Sources to compare the two with; see `measure_parity`.

    Returns:
        The comparison, which is also in the description of the folder.

    Raises:
        UserError: If the model differs too much, the folder cannot be written, or
            `ctranslate2` is not installed.
    """
    import_ctranslate2()
    export_dir = Path(export_dir)
    try:
        with atomic_folder(export_dir) as folder:
            _write_weights(system, folder)
            parity = measure_parity(system, folder, sentences)
            parity.check(system.quantization)
            _describe(system, origin, parity, folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot write {export_dir}: {reason}.") from error
    return parity


def _write_weights(system: ComparedSystem, folder: Path) -> None:
    # Imports ctranslate2, which is optional.
    from t2t_repro.export.ctranslate2_spec import model_spec, write_model

    tokenizers = (system.source_tokenizer, system.target_tokenizer)
    spec = model_spec(system.model, *tokenizers, system.positions)
    write_model(spec, str(folder), system.quantization)


def _describe(
    system: ComparedSystem,
    origin: Origin,
    parity: Parity,
    folder: Path,
) -> None:
    """Write the tokenizers and the description."""
    tokenizers = (system.source_tokenizer, system.target_tokenizer)
    names = tokenizer_file_names(*tokenizers)
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(folder / names[side])
    settings = system.hparams.values()
    ExportDescription(
        problem=origin.problem,
        hparams_set=origin.hparams_set,
        checkpoint=origin.checkpoint,
        step=step_in_name(origin.checkpoint),
        checkpoint_digest=checkpoint_digest(origin.checkpoint),
        quantization=system.quantization,
        positions=system.positions,
        max_input_length=system.max_input_length,
        tokenizers=names,
        decode_hparams={name: settings[name] for name in _DECODE_HPARAMS},
        parity=parity.values(),
        versions={
            "t2t_repro": t2t_repro.__version__,
            "ctranslate2": importlib.metadata.version("ctranslate2"),
        },
    ).save(folder)
