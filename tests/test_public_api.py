from __future__ import annotations

import json

import pytest

from tests.golden.make_public_api import GOLDEN, MODULES, public_api


@pytest.mark.parametrize("module", MODULES)
def test_names_and_signatures_stay_as_they_are(module):
    """After an intended change, run `python tests/golden/make_public_api.py`."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert public_api()[module] == golden[module]
