"""Searches that are traced once for all translators of a module."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from t2t_repro.decoding import translator


@contextlib.contextmanager
def searches_traced_once() -> Iterator[None]:
    """Let the translators of a model share the graphs of equal searches.

    Tracing a search takes a second, and most tests differ in what surrounds it.
    """
    make = translator._traced_search
    made: dict[Any, tuple[Any, ...]] = {}

    def shared(model, hparams, per_row, grammar):
        options = translator._search_options(hparams, grammar)
        key = id(model), options, hparams.extra_length, tuple(per_row)
        if key not in made:
            # Another model may get the id of one that is no longer alive.
            made[key] = model, make(model, hparams, per_row, grammar)
        return made[key][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translator, "_traced_search", shared)
        yield


@pytest.fixture(scope="module")
def shared_searches() -> Iterator[None]:
    """Trace the searches of a module once per model; see `searches_traced_once`."""
    with searches_traced_once():
        yield
