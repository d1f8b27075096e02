"""Plots of measurements, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_repro.reproduction.complexity import Measured
from t2t_repro.reproduction.sequence_layers import WIDTH_OF_LENGTHS


def plot_complexity(results: Mapping[str, Measured], path: str) -> str:
    """Draw times against n and d on logarithmic axes; return the file's path.

    Args:
        results: Measurements by label.
        path: A file whose ending matplotlib knows, as `table1.png`.
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
    return path
