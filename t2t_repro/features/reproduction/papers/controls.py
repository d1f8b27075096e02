"""Rows that separate the effect of size from that of dropout; no paper prints them."""

from __future__ import annotations

import dataclasses

from t2t_repro.features.reproduction.papers.text_systems import NOT_OF_THE_PAPERS
from t2t_repro.features.reproduction.papers.variations import SENSITIVITY, TABLE_3
from t2t_repro.features.reproduction.tables import Row, Table


def _with_less_dropout(table: Table, of: str, name: str, label: str) -> Row:
    """Return a published row with dropout 0.1 in place of 0.3.

    Args:
        table: Table of the published row.
        of: Name of the published row.
        name: Name of the new row.
        label: Name of the system.
    """
    row = {row.name: row for row in table.rows}[of]
    return dataclasses.replace(
        row,
        name=name,
        label=f"{label}, dropout 0.1",
        published={"control for": f"{table.name}/{of}"},
        hparams="layer_prepostprocess_dropout=0.1",
        system_name=f"{row.hparams_set}_dropout1",
        train_hours=None,
        baseline_set=None,
    )


DROPOUT = Table(
    "dropout",
    "Systems with dropout 0.3 in the papers, trained with 0.1",
    ("control for",),
    [
        _with_less_dropout(TABLE_3, "big", "big", "Transformer (big)"),
        _with_less_dropout(
            SENSITIVITY, "n8", "weighted_n8", "Weighted Transformer, 8 layers"
        ),
        _with_less_dropout(
            SENSITIVITY, "big", "weighted_big", "Weighted Transformer (large)"
        ),
    ],
    notes=(NOT_OF_THE_PAPERS,),
)
