"""Plot the measured times with matplotlib."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.reproduction.layer_orders import WIDTH_OF_LENGTHS

if TYPE_CHECKING:
    from t2t_repro.features.reproduction.layer_complexity import Measured


FILE_TYPES = (".png", ".pdf", ".svg")


def check_plot(path: str) -> None:
    """Check, before anything is measured, that a plot can be drawn to a file.

    Raises:
        UsageError: If matplotlib cannot write such a file, or is not installed.
        UserError: If the folder is missing or not writable.
    """
    if not path.endswith(FILE_TYPES):
        raise UsageError(
            f"received plot={path}, expected a file name in {', '.join(FILE_TYPES)}."
        )
    if Path(path).is_dir() or not os.access(Path(path).parent, os.W_OK):
        raise UserError(
            f"received plot={path}, expected a file in an existing folder that can "
            "be written to."
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "a plot needs matplotlib, which is not installed: pip install matplotlib, "
            "or leave the plot out."
        )


def plot_complexity(results: Mapping[str, Measured], path: str) -> None:
    """Draw times against n and d on logarithmic axes.

    Args:
        results: Measurements by label.
        path: File to write; its ending is one of `FILE_TYPES`.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 6), sharey=True)
    for label, measured in results.items():
        for axes, seconds, slope in (
            (left, measured.seconds_by_length, measured.length_exponent),
            (right, measured.seconds_by_width, measured.width_exponent),
        ):
            milliseconds = [1000 * value for value in seconds.values()]
            axes.loglog(
                list(seconds), milliseconds, marker="o", label=f"{label}: {slope:.2f}"
            )
    left.set(
        xlabel=f"sequence length n (d = {WIDTH_OF_LENGTHS})",
        ylabel="forward and backward, milliseconds",
        title="time against n",
    )
    right.set(
        xlabel="width d (n as the table says)",
        title="time against d",
    )
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend(
            title="layer: exponent",
            fontsize=8,
            title_fontsize=8,
            ncols=2,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.15),
        )
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
