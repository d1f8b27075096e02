"""Names for problems, models, hparams sets, attentions, evaluators and monitors.

Source: tensor2tensor's `utils/registry.py`. A decorator registers a class or function
where it is defined. It is used bare, called without arguments, or called with a name.
The default name is the snake_case form of `__name__`.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from t2t_repro.constants import SELF_ATTENTIONS
from t2t_repro.errors import UsageError, UserError, unknown_name

REVERSED_SUFFIX = "_rev"

_VALID_NAME = re.compile(r"[a-z][a-z0-9_]*")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Entry:
    """One registered name.

    Attributes:
        name: The name.
        summary: One line for listings.
        module: Module that defines the object.
        location: `file:line` of the registration.
        value: The registered object; None for a declared name whose module is not yet
            imported.
    """

    name: str
    summary: str
    module: str
    location: str
    value: Any = None


class Registry:
    """Registered objects of one kind, by name.

    Args:
        kind: Name of the kind in messages, e.g. "problem".
        how_to_list: Next step after an unknown name, for messages.
    """

    def __init__(self, kind: str, how_to_list: str) -> None:
        self.kind = kind
        self.how_to_list = how_to_list
        self._entries: dict[str, Entry] = {}
        self._refused: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._entries)

    def entry(self, name: str) -> Entry:
        """Return the entry of a name, without importing anything.

        Raises:
            UsageError: If the name is unknown; the message names the closest ones.
        """
        self.check_not_refused(name)
        if name not in self._entries:
            raise unknown_name(self.kind, name, self.names(), self.how_to_list)
        return self._entries[name]

    def get(self, name: str) -> Any:
        """Return the registered object.

        Raises:
            UsageError: If the name is unknown; the message names the closest ones.
        """
        return self.entry(name).value

    def values(self) -> list[Any]:
        """Return all registered objects, in the order of their registration."""
        return [entry.value for entry in self._entries.values()]

    def declare(self, name: str, *, module: str, summary: str) -> None:
        """Make a name known before its module is imported and registers it."""
        known = self._entries.get(name)
        if known is not None and known.module == module:
            self._entries[name] = replace(known, summary=summary)
        else:
            self._insert(Entry(name, summary, module, _caller()))

    def add(self, name: str, value: Any) -> Any:
        """Register a class or function, and complete its declaration if it has one.

        Returns:
            The class or function.

        Raises:
            UserError: If the name is malformed or taken; the message names both places.
        """
        first_line = (value.__doc__ or "").strip().partition("\n")[0]
        entry = Entry(name, first_line, value.__module__, _caller(), value)
        declared = self._entries.get(name)
        if declared and declared.value is None and declared.module == entry.module:
            self._entries[name] = replace(entry, summary=declared.summary)
        else:
            self._insert(entry)
        return value

    def refuse(self, name: str, why: str) -> None:
        """Refuse a name that has another meaning elsewhere, with an explanation."""
        self._refused[name] = why

    def check_not_refused(self, name: str) -> None:
        """Raise UsageError, with the explanation, if a name is refused."""
        if name in self._refused:
            raise UsageError(f"no {self.kind} {name!r} here: {self._refused[name]}")

    def _insert(self, entry: Entry) -> None:
        if not _VALID_NAME.fullmatch(entry.name):
            raise UserError(
                f"{entry.location}: received {entry.name!r} as the name of a "
                f"{self.kind}, expected lower-case letters, digits and underscores."
            )
        if entry.name in self._entries:
            raise UserError(
                f"the {self.kind} {entry.name!r} is registered twice: at "
                f"{self._entries[entry.name].location} and at {entry.location}.\n"
                "Give one of them another name."
            )
        self._entries[entry.name] = entry

    @contextmanager
    def isolated(self) -> Generator[Registry]:
        """Remove the registrations of the block when it ends."""
        before = dict(self._entries)
        try:
            yield self
        finally:
            self._entries = before


_USER_PACKAGE = "; t2t_usr_dir adds those of a package."

problems = Registry("problem", "`t2t list problems` names them all" + _USER_PACKAGE)
models = Registry("model", "`t2t list models` names them all" + _USER_PACKAGE)
hparams_sets = Registry(
    "hparams set", "`t2t list hparams` names them all" + _USER_PACKAGE
)
attentions = Registry(
    "self_attention_type", "`t2t list attentions` names them all" + _USER_PACKAGE
)
evaluators = Registry("evaluator", "a package registers them")
monitors = Registry("monitor", "a package registers them")


@runtime_checkable
class _HParams(Protocol):
    """The part of `HParams` that a registration needs."""

    def with_origin(self, origin: str) -> Any: ...


def snake_case(name: str) -> str:
    """Return `translate_ende_wmt14` for `TranslateEndeWmt14`."""
    return _WORD_START.sub("_", name).lower()


def _caller() -> str:
    """Return `file:line` of the registration outside this module and the features."""
    frame = sys._getframe(1)
    while _registers(frame.f_globals.get("__name__", "")) and frame.f_back is not None:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename)}:{frame.f_lineno}"


def _registers(module: str) -> bool:
    return module == __name__ or module.startswith("t2t_repro.features.")


def _decorator(
    register: Callable[[str, Any], Any], name: str | Callable[..., Any] | None
) -> Any:
    """Let `register` be used bare, or called with or without a name."""
    if callable(name):
        return register(snake_case(name.__name__), name)
    return lambda value: register(name or snake_case(value.__name__), value)


def _add_problem(name: str, cls: Any) -> Any:
    if name.endswith(REVERSED_SUFFIX):
        raise UserError(
            f"{_caller()}: received {name!r} as the name of a problem, expected one "
            f"that does not end in {REVERSED_SUFFIX}: that asks for swapped sides."
        )
    cls.registered_name = name
    return problems.add(name, cls)


def _add_hparams(name: str, function: Callable[[], Any]) -> Callable[[], Any]:
    @functools.wraps(function)
    def registered_set() -> Any:
        values = function()
        if not isinstance(values, _HParams):
            raise UserError(
                f"the hparams set {name!r} returned {values!r}, expected HParams."
            )
        return values.with_origin(name)

    hparams_sets.add(name, registered_set)
    return registered_set


def register_problem(name: str | type | None = None) -> Any:
    """Register a subclass of `data.problem.Problem`, and with it `<name>_rev`."""
    return _decorator(_add_problem, name)


def register_model(name: str | type | None = None) -> Any:
    """Register a model class with a `from_hparams` constructor."""
    return _decorator(models.add, name)


def register_attention(name: str | Callable[..., Any] | None = None) -> Any:
    """Register the attention that `self_attention_type` selects by this name.

    Decorates a subclass of `layers.MultiHeadAttention`, or a function
    `(options: LayerOptions, role: AttentionRole, **kwargs)` that returns such a layer
    and passes `kwargs` (`name`, `dtype`) to it. See docs/extending.md.
    """
    return _decorator(attentions.add, name)


def register_evaluator(name: str | Callable[..., Any] | None = None) -> Any:
    """Register an evaluator, which runs at every evaluation of a training run.

    Decorates a function of a `runs.evaluators.TrainingContext`. It returns a function
    that maps the step and the `MetricsLog` to metrics by name. See docs/extending.md.
    """
    return _decorator(evaluators.add, name)


def register_monitor(name: str | Callable[..., Any] | None = None) -> Any:
    """Register a receiver of the metrics of training runs, such as another logger.

    Decorates a function of a `runs.evaluators.TrainingContext`. It returns a function
    of the split ("train", "eval", ...), the step and the metrics by name, which is
    called after every line of `metrics.jsonl`. See docs/extending.md.
    """
    return _decorator(monitors.add, name)


def register_hparams(name: str | Callable[[], Any] | None = None) -> Any:
    """Register a function without arguments that returns an `HParams`.

    The registered function records the set's name as the origin of every value that
    does not come from another set.
    """
    return _decorator(_add_hparams, name)


for _name, _built_in in SELF_ATTENTIONS.items():
    attentions.declare(_name, module=_built_in.module, summary=_built_in.summary)
