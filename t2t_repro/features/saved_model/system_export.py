"""Write a trained system as a SavedModel."""

from __future__ import annotations

from pathlib import Path

from t2t_repro.errors import UsageError
from t2t_repro.features.saved_model.limits import MAX_SOURCE_TOKENS
from t2t_repro.features.saved_model.served_translator import (
    ServedTranslator,
    export_saved_model,
)
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams


def export_system(
    system: System,
    export_dir: str | Path,
    decode_hparams: DecodeHParams | None = None,
    max_source_tokens: int | None = None,
) -> Path:
    """Write a system as a SavedModel: strings in, translations and scores out.

    That of an ensemble has no signature `attention`.

    Args:
        system: The trained system.
        export_dir: Folder to create.
        decode_hparams: Settings of the search.
        max_source_tokens: Tokens of a source to translate, rounded up to whole pieces
            of `max_length`; the rest is cut, and the output "truncated" says so. The
            default is `MAX_SOURCE_TOKENS`.

    Raises:
        UserError: If the folder exists or cannot be written.
        UsageError: If the settings ask for random translations or minimum Bayes risk,
            or `max_source_tokens` is less than 1.
    """
    hparams = system.with_problem_defaults(decode_hparams or DecodeHParams())
    _check_search_is_exportable(hparams)
    system.warn_of_raw_text()
    served = ServedTranslator(
        system.model,
        system.source_tokenizer,
        system.target_tokenizer,
        hparams,
        system.max_input_length,
        MAX_SOURCE_TOKENS if max_source_tokens is None else max_source_tokens,
        system.problem,
    )
    export_saved_model(served, export_dir)
    return Path(export_dir)


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
