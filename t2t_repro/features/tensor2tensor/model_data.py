"""The data of a model that tensor2tensor trained: its vocabulary and its shards."""

from __future__ import annotations

from pathlib import Path

from t2t_repro import catalogue, registry
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.import_report import ImportRequest
from t2t_repro.features.tensor2tensor.old_checkpoint import OldCheckpoint
from t2t_repro.features.tensor2tensor.old_data import adopt
from t2t_repro.features.tensor2tensor.old_names import ANY_PROBLEM
from t2t_repro.features.tensor2tensor.old_settings import OldSettings
from t2t_repro.features.tensor2tensor.variable_names import Tables
from t2t_repro.features.tensor2tensor.vocabulary_files import (
    Vocabularies,
    find_vocabularies,
    given_vocabularies,
)


def vocabularies_of(
    request: ImportRequest,
    checkpoint: OldCheckpoint,
    settings: OldSettings,
    tables: Tables,
) -> Vocabularies:
    """Return the tokenizers of a model, from the given files or from its data.

    Args:
        request: The model.
        checkpoint: Its checkpoint.
        settings: Its settings.
        tables: Its symbol tables.

    Raises:
        UserError: If no vocabulary fits, or several do.
    """
    rows = tables.source_size, tables.target_size
    divisor = settings.get("vocab_divisor", 1)
    if type(divisor) is not int or divisor < 1:
        raise UserError(
            f"received vocab_divisor={divisor} in {settings.origin}, expected a "
            "positive integer."
        )
    if request.source_vocab is not None:
        return given_vocabularies(
            request.source_vocab, request.target_vocab, rows, divisor
        )
    if request.target_vocab is not None:
        raise UserError(
            "received target_vocab without source_vocab: give the inputs' as well."
        )
    folder = data_dir_of(request, settings)
    folders = [] if folder is None else [folder]
    if request.data_dir is None:
        folders.append(checkpoint.folder)
    return find_vocabularies(folders, settings.problem, rows, divisor)


def data_dir_of(request: ImportRequest, settings: OldSettings) -> Path | None:
    """Return the folder of the data: the given one, or the recorded one if there."""
    if request.data_dir is not None:
        return Path(request.data_dir)
    recorded = settings.get("data_dir", None)
    is_folder = isinstance(recorded, str) and Path(recorded).is_dir()
    return Path(recorded) if is_folder else None


def registered_problem(problem: str | None) -> str:
    """Return the name of a problem that is registered here."""
    name = problem or ""
    base = name.removesuffix(registry.REVERSED_SUFFIX)
    return (base if base in registry.problems else ANY_PROBLEM) + name[len(base) :]


def data_of(
    request: ImportRequest,
    settings: OldSettings,
    problem: str,
    vocabularies: Vocabularies,
) -> tuple[PreparedData | None, str]:
    """Return the data in `data_dir` that training can go on with, and where it is.

    Returns:
        The data, or None, and its folder, or why there is none, for messages.
    """
    if request.data_dir is None:
        return None, "none given (data_dir)"
    registered = catalogue.problem(problem)
    try:
        old_name = (settings.problem or "").removesuffix(registry.REVERSED_SUFFIX)
        source, target = vocabularies.tokenizers
        own = (target, source) if registered.was_reversed else (source, target)
        data = PreparedData.find(request.data_dir, registered) or adopt(
            registered, request.data_dir, old_name, own
        )
        if data is None:
            return None, f"{request.data_dir} has no shards of {old_name or problem}"
        pairs = zip(data.tokenizers(), vocabularies.tokenizers, strict=True)
        if any(own.to_bytes() != known.to_bytes() for own, known in pairs):
            return None, f"that in {request.data_dir} has another vocabulary"
    except UserError as error:
        return None, f"not used: {error}"
    return data, str(data.folder)
