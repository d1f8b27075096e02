"""Check the files and settings that a user gives for a problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from t2t_repro.data.problem import Problem
from t2t_repro.data.split_files import SplitText
from t2t_repro.errors import UsageError, unknown_name
from t2t_repro.settings.prepare_settings import PrepareSettings

OWN_MODEL = ("source_model", "target_model")
LEARNED_MODEL = (
    "vocab_size",
    "model_type",
    "shared_vocabulary",
    "character_coverage",
)
SAMPLED_SUBWORDS = ("subword_copies", "subword_sampling")
_FILES = {
    "pairs": "train_source and train_target",
    "trees": "train_trees",
    "tfds": "tfds",
}


def with_files(problem: Problem, files: Mapping[str, SplitText]) -> Problem:
    """Return a problem with the user's files or, without files, the problem itself.

    Args:
        problem: The problem.
        files: Files by split.

    Raises:
        UsageError: If there is no training text, or the problem does not accept files
            of this kind.
    """
    if not files:
        return problem
    if "train" not in files:
        raise UsageError(
            f"received {' and '.join(files)} text without training text, expected "
            "train_source and train_target, train_tsv, or train_trees"
        )
    for file in files.values():
        if problem.file_kind and file.kind != problem.file_kind:
            raise UsageError(
                f"received {file.kind} for problem {problem.name}, expected "
                f"{_FILES[problem.file_kind]}"
            )
    return problem.with_files(files)


def requested_settings(problem: Problem, given: Mapping[str, Any]) -> PrepareSettings:
    """Return the settings of a problem, with the given ones replaced.

    Args:
        problem: The problem, whose defaults apply to settings that are not given.
        given: Values of `PrepareSettings` by name.

    Raises:
        UsageError: If a name is unknown, or the given settings contradict each other
            or the problem.
        UserError: If a value is refused.
    """
    known = (*PrepareSettings.names(), *OWN_MODEL)
    for name in given:
        if name not in known:
            raise unknown_name(
                "preparation setting", name, known, PrepareSettings.how_to_list
            )
    _check_vocabulary(problem, given)
    own = [name for name in OWN_MODEL if name in given]
    learned = [name for name in LEARNED_MODEL if name in given]
    if own and learned:
        raise UsageError(
            f"received {_text(own[0], given)} and {_text(learned[0], given)}, expected "
            "either your own model or settings of a model to learn"
        )
    return dataclasses.replace(problem.prepare_settings, **given)


def _check_vocabulary(problem: Problem, given: Mapping[str, Any]) -> None:
    """Refuse vocabulary settings that do not apply to the problem."""
    if problem.vocabulary.kind == "symbols":
        refused = (*OWN_MODEL, *LEARNED_MODEL, *SAMPLED_SUBWORDS)
        reason = f"whose vocabulary is its {len(problem.vocabulary.symbols)} symbols"
    elif problem.vocabulary.kind == "subwords_to_symbols":
        refused = ("target_model", "shared_vocabulary")
        reason = "whose targets are the symbols of trees"
    else:
        return
    for name in refused:
        if name in given:
            raise UsageError(
                f"received {_text(name, given)} for problem {problem.name}, {reason}: "
                "leave it out"
            )


def _text(name: str, given: Mapping[str, Any]) -> str:
    return f"{name}={given[name]}"
