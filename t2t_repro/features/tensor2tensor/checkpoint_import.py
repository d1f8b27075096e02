"""Make a run of a model that tensor2tensor trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from t2t_repro import catalogue
from t2t_repro.features.tensor2tensor.adam_moments import adam_state, slot_names
from t2t_repro.features.tensor2tensor.dev_pairs import read_dev_pairs
from t2t_repro.features.tensor2tensor.forward_check import (
    Comparison,
    compare_logits,
    drawn_pairs,
)
from t2t_repro.features.tensor2tensor.hparams_translation import translated_hparams
from t2t_repro.features.tensor2tensor.import_report import ImportReport, ImportRequest
from t2t_repro.features.tensor2tensor.model_data import (
    data_dir_of,
    data_of,
    registered_problem,
    vocabularies_of,
)
from t2t_repro.features.tensor2tensor.old_checkpoint import OldCheckpoint
from t2t_repro.features.tensor2tensor.old_settings import (
    OldSettings,
    read_old_settings,
)
from t2t_repro.features.tensor2tensor.target_spaces import choose_target_space
from t2t_repro.features.tensor2tensor.variable_names import (
    BETA_POWERS,
    GLOBAL_STEP,
    TARGET_SPACES,
    Source,
    check_variables,
    symbol_tables,
    weight_sources,
)
from t2t_repro.features.tensor2tensor.vocabulary_files import Vocabularies
from t2t_repro.files import check_new_folder
from t2t_repro.runs.imported_run import ImportedModel, write_run
from t2t_repro.runs.system import System


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
    vocabularies = vocabularies_of(request, checkpoint, settings, tables)
    source, target = vocabularies.tokenizers
    tied = tables.are_tied and source is target
    has_spaces = TARGET_SPACES in checkpoint.shapes
    translated = translated_hparams(settings, tied=tied, input_bias=has_spaces)
    row, why = choose_target_space(
        checkpoint, request.target_space_id, settings.problem or ""
    )
    sources = weight_sources(checkpoint.shapes, tied=tied, target_space_id=row)
    adam, training = adam_state(
        checkpoint, settings, sources, shares_rows=_shares(sources)
    )
    names = sorted({name for own in sources.values() for name in own.names})
    variables = checkpoint.values(names)
    problem = registered_problem(settings.problem)
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
        model, variables, settings, row, data_dir_of(request, settings), vocabularies
    )
    # Only now: it writes a manifest beside the data.
    data, where = data_of(request, settings, problem, vocabularies)
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
