"""`t2t reproduce table1`: the paper's orders beside what this machine takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from t2t_repro.cli.decode import check_writable
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.progress import progress
from t2t_repro.errors import UsageError
from t2t_repro.published import LayerType
from t2t_repro.reproduction.render import aligned
from t2t_repro.reproduction.tables import Table

if TYPE_CHECKING:
    from t2t_repro.reproduction.complexity import Measured
    from t2t_repro.reproduction.sequence_layers import Sizes

PLOTS = (".png", ".pdf", ".svg")


def print_measured_table(table: Table, plot: str | None) -> None:
    """Measure the layers of the table's rows, print them, and draw them if asked.

    Raises:
        UsageError: If a plot is asked for and matplotlib is not installed, or does not
            draw such a file.
        UserError: If the plot's folder is not there or not writable.
    """
    if plot is not None:
        _check_plot(plot)
    import_tensorflow()
    from t2t_repro.reproduction import complexity
    from t2t_repro.reproduction.sequence_layers import SEQUENCE_LAYERS

    rows = {row.label: row for row in table.rows}
    kinds = [kind for kind in SEQUENCE_LAYERS if kind.orders.layer in rows]
    results = {}
    with progress(len(kinds), "layer") as advance:
        for kind in kinds:
            results[kind.label] = complexity.measure(kind)
            advance(1)
    headings = [
        *("row", "paper's row", "layer", *table.columns, "time ~ n^", "time ~ d^"),
        f"operations in a row, n = {_listed(complexity.DEPTH_LENGTHS)}",
        f"path, n = {_listed(complexity.PATH_LENGTHS)}",
        "timed at n; d",
    ]
    lines = [
        [
            *(rows[kind.orders.layer].name, kind.orders.layer, kind.label),
            *(_order(kind.orders, column) for column in table.columns),
            *(*_cells(results[kind.label]), _sizes(kind.sizes)),
        ]
        for kind in kinds
    ]
    print("\n".join([f"{table.name}: {table.title}", *aligned([headings, *lines])]))
    print("\n".join(_notes()))
    if plot is not None:
        from t2t_repro.reproduction.plots import plot_complexity

        print(plot_complexity(results, plot))


def _check_plot(plot: str) -> None:
    """Find out before anything is measured whether the plot can be drawn."""
    if not plot.endswith(PLOTS):
        raise UsageError(
            f"received --plot {plot}, expected a file name in {', '.join(PLOTS)}."
        )
    check_writable("--plot", plot)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib, which is not installed: pip install matplotlib, "
            "or leave --plot out."
        ) from None


def _cells(measured: Measured) -> list[str]:
    return [
        f"{measured.length_exponent:.2f}",
        f"{measured.width_exponent:.2f}",
        _listed(measured.sequential.values()),
        _listed(measured.paths.values()),
    ]


def _order(orders: LayerType, column: str) -> str:
    mark = "*" if column in orders.derived else ""
    return f"O({getattr(orders, column)}){mark}"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _sizes(sizes: Sizes) -> str:
    lengths, widths = sizes.lengths, sizes.widths
    return (
        f"{lengths[0]}-{lengths[-1]}; {widths[0]}-{widths[-1]} at n = "
        f"{sizes.length_of_widths}"
    )


def _notes() -> list[str]:
    from t2t_repro.reproduction.complexity import REPETITIONS
    from t2t_repro.reproduction.sequence_layers import WIDTH_OF_LENGTHS

    return [
        "O(): Table 1's, and for kernels without gaps and for separable ones section "
        "4's; n positions of width d, kernel k, neighbourhood r. *: not printed there, "
        "but the same as without the separation.",
        f"time: forward and backward pass of one sequence, median of {REPETITIONS}, "
        f"where n grows at d = {WIDTH_OF_LENGTHS}. Attention is timed with its "
        "projections, 4 n d^2, which Table 1 leaves out.",
        "operations in a row: on the longest way through the graph, loops unrolled. "
        "path: hops between the positions farthest apart, by where gradients are not "
        "zero; dilation grows k-fold from layer to layer, below n.",
    ]
