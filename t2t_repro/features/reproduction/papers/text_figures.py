"""Figures that the papers print in their text, outside the tables."""

from __future__ import annotations

from t2t_repro.features.reproduction.papers import facts
from t2t_repro.features.reproduction.tables import Row, Table

COLUMNS = ("published", "source")


def _figure(name: str, label: str, published: str, source: str) -> Row:
    """Return a figure as a row.

    Args:
        name: Name of the row.
        label: What the figure measures.
        published: The figure, with its unit.
        source: Paper and section, with the line of the LaTeX source if there is one.
    """
    return Row(name, label, {"published": published, "source": source})


TEXT = Table(
    "text",
    "Figures in the text of both papers, outside the tables",
    COLUMNS,
    [
        _figure(
            "base_step_seconds",
            "time of a step, base, 8 P100",
            f"{facts.BASE_STEP_SECONDS} s",
            "Vaswani et al., section 5.2 (LaTeX line 149)",
        ),
        _figure(
            "big_step_seconds",
            "time of a step, big, 8 P100",
            f"{facts.BIG_STEP_SECONDS} s",
            "Vaswani et al., section 5.2 (LaTeX line 149)",
        ),
        _figure(
            "pairs_ende",
            "sentence pairs, WMT 2014 en-de",
            "4.5M",
            "Vaswani et al., section 5.1 (LaTeX line 148)",
        ),
        _figure(
            "pairs_enfr",
            "sentence pairs, WMT 2014 en-fr",
            "36M",
            "Vaswani et al., section 5.1 (LaTeX line 148)",
        ),
        _figure(
            "big_enfr_bleu",
            "BLEU en-fr, newstest2014, big, in the text",
            "41.0",
            "Vaswani et al., section 6.1 (LaTeX line 51)",
        ),
        _figure(
            "aop_step_time",
            "step time of attention over parameters, against base",
            "+30 %",
            "Vaswani et al., LaTeX source only (line 38)",
        ),
        _figure(
            "added_weights",
            "weights that branches add to 213M",
            str(facts.ADDED_BRANCH_WEIGHTS),
            "Ahmed et al., section 3*",
        ),
        _figure(
            "fewer_iterations",
            "iterations until the final score, with branches",
            "15 to 40 % fewer",
            "Ahmed et al., section 4.1*",
        ),
        _figure(
            "branch_weight_spread",
            "largest over smallest kappa or alpha of a layer",
            "up to 2",
            "Ahmed et al., section 4.3*",
        ),
    ],
    notes=(
        "The text of section 6.1 has 41.0; the abstract (LaTeX line 93) and Table 2 "
        "(line 49) of the paper's later version have 41.8.",
        "*: the available text of this paper has lost its figures; they are from a "
        "complete translation.",
        "fewer_iterations and branch_weight_spread, ours: at the long scale, to the "
        "lowest dev nll that both systems reach. The spread is that of the reading "
        "that starts near 1/M.",
        "The times of a step are those of training at the paper's scale, which needs 8 "
        "GPUs, and the pairs and BLEU need the text of WMT 2014.",
    ),
    task="text",
)
