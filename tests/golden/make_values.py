"""Write `hparams.json` and `rows.json`: every value of every set and of every row.

Run from the root of the checkout::

    python tests/golden/make_values.py

A registered set never changes its meaning, and a recorded result belongs to the
settings of its row. Write the files again for a new set or row, and check that nothing
else in them changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from t2t_repro import catalogue, registry
from t2t_repro.features.reproduction import recipes
from t2t_repro.features.reproduction.paper_tables import TABLES, Row, Table

HPARAMS = Path(__file__).with_name("hparams.json")
ROWS = Path(__file__).with_name("rows.json")
PROPERTIES = (
    *("hparams_set", "hparams", "system", "train_steps", "train_hours", "baseline_set"),
    *("branch_weights", "average_last", "vocab_sizes"),
)


def all_sets() -> dict[str, dict[str, Any]]:
    """Return the values of transformer_base, and the differences of each other set."""
    catalogue.load()
    base = catalogue.hparams("transformer_base")
    sets = {"transformer_base": base.values()}
    for name in sorted(registry.hparams_sets.names()):
        changes = base.diff(catalogue.hparams(name))
        sets.setdefault(name, {key: value for key, (_, value) in changes.items()})
    return sets


def _row(table: Table, row: Row) -> dict[str, Any]:
    plain = Row("", "", {})
    values = {name: getattr(row, name) for name in PROPERTIES}
    found = {k: value for k, value in values.items() if value != getattr(plain, k)}
    if row.hparams_set and table.task == "translation":
        hparams = catalogue.hparams(row.hparams_set)
        for scale in ("small", "long"):
            recipe = recipes.reduced_recipe(table, row, hparams, scale)
            found[scale] = recipe.hparams
    return found


def all_rows() -> dict[str, dict[str, Any]]:
    """Return split, task and rows of every table, with the settings of each scale.

    Values of a row that are the defaults are left out.
    """
    tables = {
        table.name: {
            "split": table.split,
            "task": table.task,
            "target_language": table.target_language,
            "rows": {row.name: _row(table, row) for row in table.rows},
        }
        for table in TABLES
    }
    return json.loads(json.dumps(tables))


if __name__ == "__main__":
    for path, values in ((HPARAMS, all_sets()), (ROWS, all_rows())):
        text = json.dumps(values, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
