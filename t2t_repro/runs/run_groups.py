"""Folders with several runs that a feature trains and loads together."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from t2t_repro import features
from t2t_repro.errors import UsageError

if TYPE_CHECKING:
    from t2t_repro.runs.system import System


class RunGroup(Protocol):
    """The functions of a module that `Feature.groups` names."""

    def member_folders(self, output_dir: str | Path) -> list[Path]:
        """Return the folders of a group's runs; none if the folder has no group."""
        ...

    def find_members(
        self, output_dir: str | Path, checkpoints: Sequence[str]
    ) -> object:
        """Refuse runs and checkpoints that cannot be loaded; imports no TensorFlow."""
        ...

    def load_ensemble(
        self,
        output_dir: str | Path,
        checkpoints: Sequence[str] = (),
        t2t_usr_dir: str | Path | None = None,
    ) -> System:
        """Load the runs of a group, or several checkpoints of a run, as one system."""
        ...


def groups() -> list[RunGroup]:
    """Return the kinds of groups that this installation knows."""
    return [
        cast("RunGroup", importlib.import_module(name))
        for feature in features.declared().values()
        for name in feature.groups
    ]


def member_folders(output_dir: str | Path) -> list[Path]:
    """Return the folders of the runs of a group; none if the folder has no group.

    Raises:
        UserError: If the description of the group is damaged.
    """
    return next(filter(None, (g.member_folders(output_dir) for g in groups())), [])


def group_of(output_dir: str | Path) -> RunGroup:
    """Return the kind of group that loads a folder, or several checkpoints of a run.

    Raises:
        UsageError: If this installation knows none.
    """
    for group in sorted(groups(), key=lambda g: not g.member_folders(output_dir)):
        return group
    raise UsageError(
        "received several checkpoints, expected one: this installation lacks the "
        "feature that loads them as an ensemble."
    )
