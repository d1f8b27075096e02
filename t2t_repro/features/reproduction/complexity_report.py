"""Table 1: the paper's orders, and this machine's measurements with their plot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from t2t_repro.features.reproduction import layer_complexity
from t2t_repro.features.reproduction.layer_complexity import (
    WIDTH_OF_LENGTHS,
    Measured,
    SequenceLayer,
    Sizes,
)
from t2t_repro.features.reproduction.paper_tables import (
    LAYER_COLUMNS,
    LayerOrders,
    Table,
)
from t2t_repro.features.reproduction.report_writer import (
    Column,
    Report,
    make_block,
    table_report,
)


class Line(NamedTuple):
    """A layer and its measurements."""

    kind: SequenceLayer
    measured: Measured


def layers_of(table: Table) -> list[SequenceLayer]:
    """Return the kinds of layers that belong to the rows of a table."""
    rows = {row.name for row in table.rows}
    return [
        kind for kind in layer_complexity.SEQUENCE_LAYERS if kind.orders.row in rows
    ]


def measure_layers(
    kinds: Sequence[SequenceLayer],
    advance: Callable[[int], object] = lambda count: None,
) -> dict[str, Measured]:
    """Measure layers, about 15 seconds each.

    Args:
        kinds: Kinds of layers.
        advance: Called with 1 after each layer.

    Returns:
        Measurements by label.
    """
    results = {}
    for kind in kinds:
        results[kind.label] = layer_complexity.measure(kind)
        advance(1)
    return results


def complexity_report(table: Table, results: Mapping[str, Measured]) -> Report:
    """Report on Table 1.

    Args:
        table: Table 1, or some of its rows.
        results: Return value of `measure_layers` for the layers of these rows.
    """
    lines = [Line(kind, results[kind.label]) for kind in layers_of(table)]
    notes = [*_notes(), *table.notes]
    blocks = [make_block(_ORDERS, lines), make_block(_counts(), lines)]
    return table_report(table, blocks, [_data(line) for line in lines], notes)


def _order(orders: LayerOrders, column: str) -> str:
    mark = "*" if column in orders.derived else ""
    return f"O({getattr(orders, column)}){mark}"


def _order_column(name: str) -> Column[Line]:
    return Column(name, lambda line: _order(line.kind.orders, name), is_number=False)


_ROW = Column[Line]("row", lambda line: line.kind.orders.row, is_number=False)
_LAYER = Column[Line]("layer", lambda line: line.kind.label, is_number=False)
_ORDERS = [
    _ROW,
    _LAYER,
    *map(_order_column, LAYER_COLUMNS),
    Column[Line]("time ~ n^", lambda line: f"{line.measured.length_exponent:.2f}"),
    Column[Line]("time ~ d^", lambda line: f"{line.measured.width_exponent:.2f}"),
]


def _counts() -> list[Column[Line]]:
    depth_lengths = _join_numbers(layer_complexity.DEPTH_LENGTHS)
    path_lengths = _join_numbers(layer_complexity.PATH_LENGTHS)
    return [
        _ROW,
        _LAYER,
        Column(
            f"sequential, n = {depth_lengths}",
            lambda line: _join_numbers(line.measured.sequential.values()),
            is_number=False,
        ),
        Column(
            f"path, n = {path_lengths}",
            lambda line: _join_numbers(line.measured.paths.values()),
            is_number=False,
        ),
        Column("timed at", lambda line: _sizes(line.kind.sizes), is_number=False),
    ]


def _join_numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _sizes(sizes: Sizes) -> str:
    lengths, widths = sizes.lengths, sizes.widths
    return (
        f"n {lengths[0]}-{lengths[-1]}; d {widths[0]}-{widths[-1]} at n = "
        f"{sizes.length_of_widths}"
    )


def _notes() -> list[str]:
    return [
        "O(): from Table 1; for kernels without gaps and for separable ones from "
        "section 4. n positions, width d, kernel k, neighbourhood r.",
        "*: the paper does not print it; it is that of a convolution without gaps.",
        "time: forward and backward pass of one sequence, median of "
        f"{layer_complexity.REPETITIONS}; n grows at d = {WIDTH_OF_LENGTHS}. Attention "
        "includes its projections, 4 n d^2, which Table 1 leaves out.",
        "sequential: operations on the longest path through the graph, loops unrolled.",
        "path: hops between the positions farthest apart, found from gradients that "
        "are not zero; dilation grows k-fold from layer to layer, below n.",
    ]


def _data(line: Line) -> dict[str, Any]:
    orders = dataclasses.asdict(line.kind.orders)
    return {
        "row": orders.pop("row"),
        "layer": line.kind.label,
        "published": orders,
        "measured": dataclasses.asdict(line.measured),
        "sizes": dataclasses.asdict(line.kind.sizes),
    }


def plot_complexity(results: Mapping[str, Measured], path: str) -> None:
    """Draw times against n and d on logarithmic axes.

    Args:
        results: Measurements by label.
        path: File to write; its ending chooses the format.
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
