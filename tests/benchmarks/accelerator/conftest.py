"""Prepared data that the tests of training on an accelerator share."""

from __future__ import annotations

import pytest

from t2t_repro.data.prepared import PreparedData
from tests.support.trained_system import prepared_text


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> PreparedData:
    return prepared_text(tmp_path_factory.mktemp("data"))
