"""The numbers that the two papers print, without any of our measurements.

Vaswani et al. 2017 (arXiv 1706.03762), including the section on attention over
parameters that only its LaTeX source has, and Ahmed, Keskar and Socher 2017 (arXiv
1711.02132). BLEU is tokenised and compounds are split, as in the papers. None marks an
empty cell.
"""

from __future__ import annotations

from t2t_repro.features.reproduction.layer_orders import TABLE_1
from t2t_repro.features.reproduction.papers.controls import DROPOUT
from t2t_repro.features.reproduction.papers.parsing import TABLE_4
from t2t_repro.features.reproduction.papers.text_figures import TEXT
from t2t_repro.features.reproduction.papers.text_systems import ATTENTION, BRANCHES
from t2t_repro.features.reproduction.papers.translation import ENFR, TABLE_2, WEIGHTED
from t2t_repro.features.reproduction.papers.variations import (
    ATTENTION_OVER_PARAMETERS,
    RANDOMISATION,
    SENSITIVITY,
    TABLE_3,
)
from t2t_repro.features.reproduction.papers.weighted_forms import FORMS
from t2t_repro.features.reproduction.tables import Table

TABLES: tuple[Table, ...] = (
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    ATTENTION_OVER_PARAMETERS,
    WEIGHTED,
    SENSITIVITY,
    RANDOMISATION,
    ENFR,
    ATTENTION,
    BRANCHES,
    FORMS,
    DROPOUT,
    TEXT,
)
