"""Check that prepared data agrees with the requested text and settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from t2t_repro.data.manifest import repair_advice
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem
from t2t_repro.data.text_files import identity
from t2t_repro.description_file import differences
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings

# The user's own models are sources: their content is compared.
MODEL_ROLES = ("source_model", "target_model")

Sources = dict[str, dict[str, Any]]


def sources_of(
    problem: Problem, settings: PrepareSettings, tmp_dir: str | Path | None
) -> Sources:
    """Return the identity of each source of the data, by role.

    Raises:
        UserError: If a file cannot be read.
    """
    identities = problem.source_identities(tmp_dir)
    text = {role: dict(facts) for role, facts in identities.items()}
    return {**text, **_model_identities(settings)}


def _model_identities(settings: PrepareSettings) -> Sources:
    paths = {role: getattr(settings, role) for role in MODEL_ROLES}
    return {
        role: identity(Path(path)) for role, path in paths.items() if path is not None
    }


def check_all(data: PreparedData, settings: PrepareSettings, sources: Sources) -> None:
    """Refuse data that differs in any way from the request.

    Raises:
        UserError: If it differs; the message names every difference.
    """
    _check(data, settings, settings.names(), sources)


def check_given(
    data: PreparedData,
    settings: PrepareSettings,
    given: Collection[str],
    tmp_dir: str | Path | None,
) -> None:
    """Refuse data that differs from the given settings, models and text.

    Args:
        data: The data.
        settings: Settings that include the given ones.
        given: Names of the given settings. The others may differ.
        tmp_dir: Folder for downloads, or None for the source's own default.

    Raises:
        UserError: If it differs; the message names every difference.
    """
    problem = data.problem.base
    if problem.has_text:
        sources = sources_of(problem, settings, tmp_dir)
        kept = MODEL_ROLES
    else:
        sources = _model_identities(settings)
        kept = tuple(data.manifest.sources)
    recorded = {
        role: facts for role, facts in data.manifest.sources.items() if role in kept
    }
    names = [name for name in settings.names() if name in given]
    _check(data, settings, names, {**recorded, **sources})


def _check(
    data: PreparedData,
    settings: PrepareSettings,
    names: Collection[str],
    sources: Sources,
) -> None:
    manifest = data.manifest
    there = {name: PrepareSettings.value_in(manifest.settings, name) for name in names}
    found = differences(there, {name: getattr(settings, name) for name in names})
    found += differences(
        {"the problem's version": manifest.problem_version},
        {"the problem's version": data.problem.base.version},
    )
    found += _source_differences(manifest.sources, sources)
    if found:
        advice = repair_advice(data.folder)
        raise UserError(
            f"{data.folder} holds {manifest.problem} prepared otherwise: "
            f"{'; '.join(found)}.\n{advice[0].upper()}{advice[1:]}"
        )


def _source_differences(
    there: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    found = []
    for role in sorted({*there, *now}):
        if role not in now:
            found.append(f"{role} was given there")
        elif role not in there:
            found.append(f"{role} was not given there")
        elif dict(there[role]) != dict(now[role]):
            found.append(f"{role} has other content")
    return found
