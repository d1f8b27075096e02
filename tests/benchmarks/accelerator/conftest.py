"""Prepared data that the tests of training on an accelerator share."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.data.prepare import prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.request import PairFiles
from tests.support.trained_system import write_text


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> PreparedData:
    folder = tmp_path_factory.mktemp("data")
    text = write_text(folder)
    files = {
        split: PairFiles(text[split, "source"], text[split, "target"])
        for split in ("train", "dev", "test")
    }
    problem = catalogue.problem("text_pairs").with_files(files)
    settings = problem.prepare_settings.replace(vocab_size=350)
    return prepare(problem, folder / "data", settings=settings)
