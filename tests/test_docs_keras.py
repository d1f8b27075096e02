"""The code of docs/keras.md and of the examples in docstrings runs."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

import keras
import numpy as np
import pytest

from t2t_repro import layers
from t2t_repro.training import losses

CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
KERAS_OBJECTS = (losses.SmoothedCrossentropy, losses.TokenAccuracy)
LAYERS = [
    value
    for name in layers.__all__
    if isinstance(value := getattr(layers, name), type)
    and issubclass(value, keras.layers.Layer)
]


# Keras 3.15 reads TensorFlow variables in a way that NumPy 2 warns of.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_the_page_runs_from_top_to_bottom(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (repository / "docs" / "keras.md").read_text(encoding="utf-8")
    assert len(text.split()) < 700
    names: dict[str, Any] = {}
    for block in CODE.findall(text):
        exec(block, names)
    assert names["scores"].shape == (2, 4, 7, 7)
    assert set(names["model"].history.history) == {"loss", "token_accuracy"}


@pytest.mark.parametrize("public", [*LAYERS, *KERAS_OBJECTS], ids=lambda c: c.__name__)
def test_the_example_of_a_docstring_runs(public):
    _, _, example = inspect.getdoc(public).partition("\nExample:\n")
    (code,) = CODE.findall(example)
    exec(
        textwrap.dedent(code),
        {"keras": keras, "np": np, **vars(layers), **vars(losses)},
    )
