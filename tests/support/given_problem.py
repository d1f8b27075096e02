"""Problems made of functions."""

from __future__ import annotations

from collections.abc import Callable

from t2t_repro.data.problem import Problem


def problem_with(**methods: Callable[..., object]) -> Problem:
    """Return a problem with these methods, which are functions without `self`."""
    functions = {name: staticmethod(method) for name, method in methods.items()}
    return type("GivenProblem", (Problem,), functions)()
