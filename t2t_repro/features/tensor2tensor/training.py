"""Translate problems, sets and hparams of `t2t-trainer` and `t2t-datagen`."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_repro import registry
from t2t_repro.cli.framework import load_catalogue
from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor.hparams import HPARAM_VALUES, HPARAMS
from t2t_repro.features.tensor2tensor.overrides import joined, translated
from t2t_repro.features.tensor2tensor.problems import (
    OTHER_PROBLEMS,
    PROBLEMS,
    OldProblem,
)
from t2t_repro.features.tensor2tensor.sets import SETS
from t2t_repro.features.tensor2tensor.translation import Translation

TRAIN_STEPS = "250000"  # tensor2tensor's default
_SEVERAL = ("*", ",", "-")


def name_problem(result: Translation, given: Mapping[str, str]) -> None:
    """Name the problem as it is called here, or the nearest one.

    Raises:
        UsageError: If no problem here has the same text.
    """
    written, problem = next(
        (
            (f"--{flag}={given[flag]}", given[flag])
            for flag in _PROBLEM
            if given.get(flag)
        ),
        ("", ""),
    )
    if not problem:
        return
    if any(mark in problem for mark in _SEVERAL):
        raise UsageError(f"{written}: expected one problem; run the command for each.")
    base = problem.removesuffix(registry.REVERSED_SUFFIX)
    suffix = problem[len(base) :]
    load_catalogue(given.get("t2t_usr_dir") or None)
    if base in registry.problems:
        result.flags["problem"] = problem
        return
    old = PROBLEMS.get(base) or _of_another_kind(base)
    if not old.name:
        if old.answer:
            raise UsageError(f"{written}: it is not here; {old.answer}.")
        result.flags["problem"] = problem
        return
    result.flags["problem"] = old.name + suffix
    if old.vocab_size is not None:
        result.flags["vocab_size"] = str(old.vocab_size)
    difference = f" ({old.answer})" if old.answer else ""
    result.notes.append(f"{written}: here {old.name}{suffix}{difference}")


_PROBLEM = ("problem", "problems")


def _of_another_kind(problem: str) -> OldProblem:
    beginnings = (b for b in OTHER_PROBLEMS if problem.startswith(b))
    answer = OTHER_PROBLEMS.get(next(beginnings, ""), "")
    return OldProblem(answer=answer)


def describe(result: Translation, given: Mapping[str, str]) -> None:
    """Add the set, the hparams and the steps of a training run.

    Raises:
        UsageError: If the set or an hparam has no equivalent.
    """
    result.flags.setdefault("train_steps", TRAIN_STEPS)
    if given.get("save_checkpoints_secs", "0") not in ("", "0"):
        result.flags.pop("save_checkpoints_steps", None)
    changes = _name_set(result, given.get("hparams_set", ""))
    own = translated(
        result, "hparams", given.get("hparams", ""), HPARAMS, HPARAM_VALUES
    )
    if changes or own:
        result.flags["hparams"] = joined({**changes, **own})


def _name_set(result: Translation, name: str) -> Mapping[str, str]:
    """Name a set as it is called here, and return the hparams that differ from it."""
    if not name:
        return {}
    old = SETS.get(name)
    if old is None:
        result.flags["hparams_set"] = name
        return {}
    if not old.base:
        raise UsageError(
            f"--hparams_set={name}: no set here has its values; {old.answer}."
        )
    result.flags["hparams_set"] = old.base
    if name != old.base:
        other = (
            f"; the set {name} here has others" if name in registry.hparams_sets else ""
        )
        result.notes.append(f"--hparams_set={name}: tensor2tensor's values{other}")
    return old.changes
