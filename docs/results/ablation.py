"""Scores of the readings of the Weighted Transformer, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from results import form_runs
from results.convergence import branch_spreads
from results.curves import Curve
from results.derived import on_accelerator
from results.form_runs import BLEU, NLL, SCALE
from results.tables import without_empty_columns
from t2t_repro.features.reproduction.order_agreement import decimals
from t2t_repro.features.reproduction.report_writer import mean_and_spread
from t2t_repro.features.reproduction.result_files import NOT_YET, Result, averaged_score
from t2t_repro.text_tables import markdown

SCORES = {
    NLL: "dev nll",
    "BLEU (dev)": "dev BLEU",
    "BLEU (test)": "test2016 BLEU",
    BLEU: "both",
    averaged_score(NLL): "dev nll, average",
    averaged_score(BLEU): "both, average",
}
LARGEST_RATIO = 100  # a branch may be switched off
_HEADINGS = ("row", *SCORES.values(), "seeds", "trained on", "spread")


def systems() -> str:
    """Return what each row is, and its changes to the set, as a list."""
    lines = []
    for row in form_runs.rows():
        changes = row.hparams.replace(",", ", ")
        settings = f" (`{changes}`)" if changes else ""
        lines.append(f"- `forms/{row.name}`: {row.label}{settings}.")
    return "\n".join(lines)


def forms(results: Sequence[Result], curves: Sequence[Curve]) -> str:
    """Return the readings at the long scale, measured or not, as a table.

    Args:
        results: Results of any systems.
        curves: Learning curves; those named SYSTEM-long belong to a system.
    """
    measured = form_runs.measured(results)
    lines = []
    for row in form_runs.rows():
        name, own = f"`forms/{row.name}`", measured[str(row.system)]
        if own:
            lines.append([name, *_cells(own), _spread(str(row.system), curves)])
        else:
            lines.append([name, NOT_YET, *[""] * (len(_HEADINGS) - 2)])
    return "\n".join(markdown(without_empty_columns([_HEADINGS, *lines])))


def _cells(results: Sequence[Result]) -> list[str]:
    """Return the mean and spread of each score, the seeds, and the hardware."""
    hardware = {"accelerator" if on_accelerator(x.versions) else "CPU" for x in results}
    return [
        *(
            mean_and_spread(
                [x.scores[name] for x in results if name in x.scores], decimals(name)
            )
            for name in SCORES
        ),
        str(len(results)),
        " and ".join(sorted(hardware)),
    ]


def _spread(system: str, curves: Sequence[Curve]) -> str:
    """Return the median and the largest spread of the branch weights at the end."""
    found = [
        ratio
        for curve in curves
        if curve.name == f"{system}-{SCALE}"
        for ratio in branch_spreads(curve)
    ]
    if not found:
        return ""
    return f"{_ratio_text(statistics.median(found))}, {_ratio_text(max(found))}"


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio <= LARGEST_RATIO else f"> {LARGEST_RATIO}"
