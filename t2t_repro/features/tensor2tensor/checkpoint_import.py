"""Make a run of a model that tensor2tensor trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from t2t_repro import catalogue, registry
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.adam_moments import adam_state, slot_names
from t2t_repro.features.tensor2tensor.dev_pairs import read_dev_pairs
from t2t_repro.features.tensor2tensor.forward_check import (
    Comparison,
    compare_logits,
    drawn_pairs,
)
from t2t_repro.features.tensor2tensor.hparams_translation import translated_hparams
from t2t_repro.features.tensor2tensor.import_report import ImportReport, ImportRequest
from t2t_repro.features.tensor2tensor.old_checkpoint import OldCheckpoint
from t2t_repro.features.tensor2tensor.old_data import adopt
from t2t_repro.features.tensor2tensor.old_names import ANY_PROBLEM
from t2t_repro.features.tensor2tensor.old_settings import (
    OldSettings,
    read_old_settings,
)
from t2t_repro.features.tensor2tensor.variable_names import (
    BETA_POWERS,
    GLOBAL_STEP,
    TARGET_SPACES,
    Source,
    Tables,
    check_variables,
    slot_name,
    symbol_tables,
    weight_sources,
)
from t2t_repro.features.tensor2tensor.vocabulary_files import (
    Vocabularies,
    find_vocabularies,
    given_vocabularies,
)
from t2t_repro.files import check_new_folder
from t2t_repro.runs.imported_run import ImportedModel, write_run
from t2t_repro.runs.system import System

# Target spaces of problems that are not those of text; see `SpaceID` of tensor2tensor's
# data_generators/problem.py.
_KNOWN_SPACES = {"algorithmic_": 11, "wsj_parsing": 15, "ice_parsing": 19}


def import_checkpoint(
    request: ImportRequest, output_dir: str | Path
) -> tuple[System, ImportReport]:
    """Make a run of a model that tensor2tensor trained, and compare both.

    Args:
        request: The model.
        output_dir: Folder of the run, which must not exist.

    Returns:
        The run's system, and what was found.

    Raises:
        UserError: If something is missing, damaged, unknown, or the model here would
            compute something else. Nothing is written.
        UsageError: If a name or value of the request is refused.
    """
    check_new_folder(output_dir)
    imported, model, report = read_model(request)
    return write_run(imported, output_dir, model), report


def read_model(
    request: ImportRequest,
) -> tuple[ImportedModel, keras.Model, ImportReport]:
    """Read a model of tensor2tensor, and compare both; see `import_checkpoint`."""
    catalogue.load(request.t2t_usr_dir)
    checkpoint = OldCheckpoint.open(request.model, request.checkpoint_path)
    check_variables(checkpoint.shapes)
    settings = read_old_settings(
        checkpoint.folder,
        checkpoint.shapes,
        hparams_set=request.hparams_set,
        hparams=request.hparams,
        problem=request.problem,
    )
    tables = symbol_tables(checkpoint.shapes)
    vocabularies = _vocabularies_of(request, checkpoint, settings, tables)
    source, target = vocabularies.tokenizers
    tied = tables.are_tied and source is target
    has_spaces = TARGET_SPACES in checkpoint.shapes
    translated = translated_hparams(settings, tied=tied, input_bias=has_spaces)
    row, why = _choose_target_space(
        checkpoint, request.target_space_id, settings.problem or ""
    )
    sources = weight_sources(checkpoint.shapes, tied=tied, target_space_id=row)
    adam, training = adam_state(
        checkpoint, settings, sources, shares_rows=_shares(sources)
    )
    names = sorted({name for own in sources.values() for name in own.names})
    variables = checkpoint.values(names)
    problem = _registered_problem(settings.problem)
    imported = ImportedModel(
        hparams_set=translated.hparams_set,
        hparams=translated.hparams,
        tokenizers=vocabularies.tokenizers,
        weights={p: s.value(variables.__getitem__) for p, s in sources.items()},
        problem=problem,
        adam=adam,
        t2t_usr_dir=request.t2t_usr_dir,
    )
    model = imported.build()
    comparison = _compare(
        model, variables, settings, row, _data_dir_of(request, settings), vocabularies
    )
    # Only now: it writes a manifest beside the data.
    data, where = _data_of(request, settings, problem, vocabularies)
    report = ImportReport(
        checkpoint=checkpoint,
        settings=settings,
        vocabularies=vocabularies,
        translated=translated,
        used=len(names),
        unused=tuple(_unused(checkpoint, sources, has_adam=adam is not None)),
        target_space=f"row {row} of {checkpoint.shapes[TARGET_SPACES][0]}, {why}"
        if has_spaces
        else "",
        data=where,
        training=f"Adam's moments of {training}; training goes on from there"
        if adam
        else f"not used, because {training}; training begins at step 0",
        comparison=comparison,
    )
    return dataclasses.replace(imported, data=data), model, report


def _shares(sources: Mapping[str, Source]) -> bool:
    names = [name for source in sources.values() for name in source.names]
    return len(set(names)) < len(names)


def _compare(
    model: keras.Model,
    variables: Mapping[str, np.ndarray],
    settings: OldSettings,
    row: int,
    data_dir: Path | None,
    vocabularies: Vocabularies,
) -> Comparison:
    source, target = vocabularies.tokenizers
    rows = source.vocab_size, target.vocab_size
    pairs: Any = read_dev_pairs(data_dir, settings.problem, rows)
    origin = "of the dev data"
    if not pairs:
        pairs, origin = drawn_pairs(rows), "of random ids"
    return compare_logits(model, variables, settings.values, row, pairs, origin)


def _unused(
    checkpoint: OldCheckpoint, sources: Mapping[str, Source], *, has_adam: bool
) -> list[str]:
    used = [name for source in sources.values() for name in source.names]
    if has_adam:
        for own in slot_names(sources).values():
            used += [name for source in own.values() for name in source.names]
        used += [GLOBAL_STEP, *BETA_POWERS]
    return sorted(checkpoint.shapes.keys() - set(used))


def _vocabularies_of(
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
    folder = _data_dir_of(request, settings)
    folders = [] if folder is None else [folder]
    if request.data_dir is None:
        folders.append(checkpoint.folder)
    return find_vocabularies(folders, settings.problem, rows, divisor)


def _data_dir_of(request: ImportRequest, settings: OldSettings) -> Path | None:
    """Return the folder of the data: the given one, or the recorded one if there."""
    if request.data_dir is not None:
        return Path(request.data_dir)
    recorded = settings.get("data_dir", None)
    is_folder = isinstance(recorded, str) and Path(recorded).is_dir()
    return Path(recorded) if is_folder else None


def _registered_problem(problem: str | None) -> str:
    """Return the name of a problem that is registered here."""
    name = problem or ""
    base = name.removesuffix(registry.REVERSED_SUFFIX)
    return (base if base in registry.problems else ANY_PROBLEM) + name[len(base) :]


def _data_of(
    request: ImportRequest,
    settings: OldSettings,
    problem: str,
    vocabularies: Vocabularies,
) -> tuple[PreparedData | None, str]:
    """Return the data in `data_dir` for further training, and its folder.

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


def _choose_target_space(
    checkpoint: OldCheckpoint, given: int | None, problem: str
) -> tuple[int, str]:
    """Return the row of the target spaces that the model was trained with, and why.

    tensor2tensor adds it to every position of the encoder's input. Its number
    belongs to the problem and is not in any file.

    Args:
        checkpoint: The checkpoint.
        given: Row that the user gives, or None.
        problem: Name of the problem; empty if nothing tells.

    Returns:
        The row, and the reason; empty if there are no rows.

    Raises:
        UserError: If there is no such row.
    """
    if TARGET_SPACES not in checkpoint.shapes:
        if given is not None:
            raise UserError(
                f"received target_space_id={given}, expected none: the checkpoint has "
                "no embedding of target spaces."
            )
        return 0, ""
    rows = checkpoint.shapes[TARGET_SPACES][0]
    if given is not None:
        if not 0 <= given < rows:
            raise UserError(
                f"received target_space_id={given}, expected a row below {rows}."
            )
        return given, "as given"
    if (row := _used_target_space(checkpoint)) is not None:
        return row, "the only one that was trained"
    for beginning, row in _KNOWN_SPACES.items():
        if problem.startswith(beginning):
            return row, f"that of {problem}"
    return (
        0,
        "that of text problems since version 1.3 (target_space_id chooses another)",
    )


def _used_target_space(checkpoint: OldCheckpoint) -> int | None:
    """Return the only row of the target spaces that training changed.

    Returns:
        The row, or None if nothing tells it: there are no moments, or they are zero.
    """
    name = slot_name("squares", TARGET_SPACES)
    if name not in checkpoint.shapes:
        return None
    moments = checkpoint.values([name])[name]
    rows = np.flatnonzero(np.any(moments != 0, axis=1))
    return int(rows[0]) if len(rows) == 1 else None
