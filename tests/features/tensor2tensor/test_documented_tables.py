from __future__ import annotations

import re

from t2t_repro import catalogue
from tests.features.tensor2tensor.documented_tables import PAGE, all_tables, with_tables
from tests.support.old_packages import old_packages

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_code():
    assert with_tables(TEXT) == TEXT, (
        "run tests/features/tensor2tensor/documented_tables.py"
    )


def test_the_package_of_the_page_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    with old_packages(tmp_path) as load:
        load(blocks[-1], imports="")
        problem = catalogue.problem("translate_own")
        assert catalogue.hparams("transformer_own").hidden_size == 128
    assert list(problem.pairs("train", None)) == [("a house", "ein Haus")]


def test_every_table_of_the_code_is_on_the_page():
    assert re.findall(r"<!-- table: ([\w-]+) -->", TEXT) == list(all_tables())
