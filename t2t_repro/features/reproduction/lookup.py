"""Find tables and rows by the names that users type."""

from __future__ import annotations

import dataclasses

from t2t_repro.errors import UsageError, unknown_name
from t2t_repro.features.reproduction.papers import TABLES
from t2t_repro.features.reproduction.tables import Row, Table

_HOW_TO_LIST = "`t2t reproduce` lists the tables."


def find_table(name: str) -> Table:
    """Return the table with a name.

    Raises:
        UsageError: If there is none.
    """
    for table in TABLES:
        if table.name == name:
            return table
    raise unknown_name("table", name, [table.name for table in TABLES], _HOW_TO_LIST)


def find_row(name: str) -> tuple[Table, Row]:
    """Return the table and the row given by TABLE/ROW.

    Raises:
        UsageError: If there is no such row.
    """
    table_name, slash, row_name = name.partition("/")
    if not slash:
        raise UsageError(f"received {name!r}, expected TABLE/ROW. {_HOW_TO_LIST}")
    table = find_table(table_name)
    row = table.row(row_name)
    if row is None:
        names = [known.name for known in table.rows]
        how_to_list = f"`t2t reproduce {table_name}` shows them."
        raise unknown_name("row", row_name, names, how_to_list)
    return table, row


def select(name: str) -> Table:
    """Return a table given by TABLE, or with only one row, given by TABLE/ROW.

    Raises:
        UsageError: If there is no such table or row.
    """
    if "/" not in name:
        return find_table(name)
    table, row = find_row(name)
    return dataclasses.replace(table, rows=[row])
