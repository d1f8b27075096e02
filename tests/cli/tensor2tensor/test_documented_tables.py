from __future__ import annotations

import re

from tests.cli.tensor2tensor.documented_tables import PAGE, all_tables, with_tables

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_code():
    assert with_tables(TEXT) == TEXT, "run tests/cli/tensor2tensor/documented_tables.py"


def test_every_table_of_the_code_is_on_the_page():
    assert re.findall(r"<!-- table: ([\w-]+) -->", TEXT) == list(all_tables())
