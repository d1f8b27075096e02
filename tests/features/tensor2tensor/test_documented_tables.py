from __future__ import annotations

import re

from t2t_repro import catalogue, registry
from tests.features.tensor2tensor.documented_tables import PAGE, all_tables, with_tables

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_code():
    assert with_tables(TEXT) == TEXT, (
        "run tests/features/tensor2tensor/documented_tables.py"
    )


def test_the_package_of_the_page_registers_its_problem(tmp_path):
    package = tmp_path / "documented_package"
    package.mkdir()
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (package / "__init__.py").write_text(blocks[-1])
    catalogue.load()
    with registry.problems.isolated():
        catalogue.load(package)
        problem = catalogue.problem("translate_own")
    assert list(problem.pairs("train", None)) == [("a house", "ein Haus")]


def test_every_table_of_the_code_is_on_the_page():
    assert re.findall(r"<!-- table: ([\w-]+) -->", TEXT) == list(all_tables())
