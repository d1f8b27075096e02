from __future__ import annotations

import inspect

import pytest

from t2t_repro import catalogue, registry
from tests.hparams.test_parsing import PARSING
from tests.hparams.test_transformer import SETS
from tests.hparams.test_variations import ALIASES, ROWS
from tests.hparams.test_weighted import WEIGHTED

PINNED = {*SETS, *WEIGHTED, *PARSING, *(f"transformer_base_{row}" for row in ROWS)}


def test_every_registered_set_is_pinned():
    catalogue.load()
    assert set(registry.hparams_sets.names()) == PINNED | set(ALIASES)


@pytest.mark.parametrize("name", sorted(PINNED))
@pytest.mark.parametrize("label", ["Source", "Published", "Measured", "Command"])
def test_every_set_has_a_card_with_its_lines(name, label):
    catalogue.load()
    lines = (inspect.getdoc(registry.hparams_sets.get(name)) or "").splitlines()
    starts = [line for line in lines if line.startswith(f"{label}: ")]
    assert len(starts) == 1
