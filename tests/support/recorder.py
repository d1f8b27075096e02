"""Record the arguments that a function receives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest


class Recorder:
    """A stand-in that keeps the arguments of its calls by the names of parameters.

    A call that the real function would not accept raises `TypeError`, and an argument
    that is left out appears with its default value.

    Args:
        function: The real function or class.
        result: Value to return, or a function of the same arguments that returns it.

    Attributes:
        calls: Arguments of each call, by name.
    """

    def __init__(self, function: Callable[..., Any], result: Any = None) -> None:
        self.__signature__ = inspect.signature(function)
        self._result = result
        self.calls: list[dict[str, Any]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        self.calls.append(dict(bound.arguments))
        if callable(self._result):
            return self._result(*args, **kwargs)
        return self._result

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        """Receive the instance as the first argument, as a method does."""
        return self if instance is None else functools.partial(self, instance)

    @property
    def call(self) -> dict[str, Any]:
        """Arguments of the only call."""
        (call,) = self.calls
        return call


def record(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, result: Any = None
) -> Recorder:
    """Replace a function of a module or class by a `Recorder` of its arguments."""
    recorder = Recorder(getattr(owner, name), result)
    monkeypatch.setattr(owner, name, recorder)
    return recorder


def spy(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Recorder:
    """Record the arguments of a function, which is still called."""
    return record(monkeypatch, owner, name, getattr(owner, name))
