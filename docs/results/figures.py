"""Figures of the page of results, drawn with matplotlib."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from results import losses
from results.curve_figures import draw_branch_weights, draw_learning_curves
from results.curves import Curve
from results.measurements import Measurement
from results.parsers import GOLD
from results.seeds import by_seed
from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.reproduction.recipes import WIDTH_DIVISOR
from t2t_repro.features.reproduction.result_files import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FOLDER = "figures"
ENSEMBLE = "multi30k_ensemble"
_TABLES = ("table3", "sensitivity")
_PERPLEXITIES = (10, 20, 40, 80)  # ticks
# Text stays text, and equal numbers give equal files.
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "t2t_repro",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 3.5,
}


@dataclass(frozen=True)
class FigureData:
    """Everything that figures are drawn from.

    Attributes:
        results: Results of rows of the papers' tables.
        measurements: Other measurements by name.
        curves: Learning curves.
    """

    results: Sequence[Result]
    measurements: Mapping[str, Measurement]
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Figure:
    """A figure of the page.

    Attributes:
        title: Its alternative text and, as a sentence, its caption.
        draw: Function that draws it.
    """

    title: str
    draw: Callable[[Canvas, FigureData], None]


def links() -> dict[str, str]:
    """Return the Markdown of each figure."""
    return {
        name: f"![{figure.title}]({FOLDER}/{name}.svg)\n\n*{figure.title}.*"
        for name, figure in FIGURES.items()
    }


def draw_figures(data: FigureData, folder: Path) -> list[Path]:
    """Draw every figure.

    Args:
        data: Numbers to draw.
        folder: Folder of the page; the figures are written to its `figures`.

    Returns:
        Paths of the figures.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    (folder / FOLDER).mkdir(exist_ok=True)
    paths = []
    with matplotlib.rc_context(_STYLE):
        for name, figure in FIGURES.items():
            canvas = pyplot.figure(figsize=(8, 3.6), layout="constrained")
            figure.draw(canvas, data)
            paths.append(folder / FOLDER / f"{name}.svg")
            canvas.savefig(paths[-1], metadata={"Date": None})
            pyplot.close(canvas)
    return paths


def _draw_ensemble(canvas: Canvas, data: FigureData) -> None:
    """Draw what the page's table has: nll and BLEU of both members during training."""
    found = data.measurements[ENSEMBLE]
    for axes, score in zip(canvas.subplots(1, 2), ("nll", "BLEU"), strict=True):
        for seed in (1, 2):
            axes.plot(
                *found.columns("steps", f"dev {score}, seed {seed}"),
                marker="o",
                label=f"seed {seed}",
            )
        axes.set(xlabel="steps", ylabel=f"dev {score}")
    axes.legend(loc="lower right")


def _draw_bleu_parameters(canvas: Canvas, results: Sequence[Result]) -> None:
    axes = canvas.subplots()
    base_size = next(
        size for name, size, _ in _bleu_points(_TABLES[0], results) if name == "base"
    )
    for table, marker in zip(_TABLES, ("o", "^"), strict=True):
        points = list(_bleu_points(table, results))
        axes.errorbar(
            [size / 1e6 for _, size, _ in points],
            [statistics.mean(scores) for *_, scores in points],
            yerr=[
                statistics.stdev(scores) if len(scores) > 1 else 0.0
                for *_, scores in points
            ],
            fmt=marker,
            label=table,
        )
        for label, size, scores in points:
            if table == _TABLES[0] and size == base_size and label != "base":
                continue  # they would hide each other
            axes.annotate(
                label,
                (size / 1e6, statistics.mean(scores)),
                fontsize=6,
                xytext=(4, 3),
                textcoords="offset points",
            )
    axes.set(xlabel="million parameters", ylabel="dev BLEU")
    axes.legend(title="one point per row", loc="lower center")


def _bleu_points(
    table: str, results: Sequence[Result]
) -> Iterator[tuple[str, int, list[float]]]:
    """Yield the name, parameters and dev BLEU of each row at the long scale."""
    for row in find_table(table).rows:
        own = [x for x in results if (x.scale, x.system) == ("long", row.system)]
        if own:
            yield row.name, own[0].parameters, [x.scores["BLEU (dev)"] for x in own]


def _draw_attention_functions(canvas: Canvas, data: FigureData) -> None:
    axes = canvas.subplots()
    for function, points in attention_points(data.results).items():
        axes.plot(list(points), list(points.values()), marker="o", label=function)
    axes.set(
        xlabel="trained d_k",
        xscale="log",
        ylabel="dev perplexity",
        yscale="log",
        title="query-key functions, Multi30k",
    )
    depths = sorted(
        {depth for x in attention_points(data.results).values() for depth in x}
    )
    axes.set_xticks(depths, labels=[f"{depth}" for depth in depths], minor=False)
    axes.set_yticks(_PERPLEXITIES, labels=[*map(str, _PERPLEXITIES)])
    axes.minorticks_off()
    axes.legend(loc="upper left")


def attention_points(results: Sequence[Result]) -> dict[str, dict[int, float]]:
    """Return the dev perplexity of each attention function, by the d_k trained."""
    found: dict[str, dict[int, float]] = {}
    for row in find_table("attention").rows:
        function, _, depth = row.name.partition("_dk")
        scores = by_seed(results, str(row.system), "perplexity (dev)").values()
        if depth and scores:
            trained = int(depth) // WIDTH_DIVISOR
            found.setdefault(function, {})[trained] = statistics.mean(scores)
    return found


def _draw_f1_by_length(canvas: Canvas, data: FigureData) -> None:
    axes = canvas.subplots()
    found = f1_classes(data.results)
    names = dict.fromkeys(name for classes in found for name in classes)
    means = [
        statistics.mean(classes[name] for classes in found if name in classes)
        for name in names
    ]
    axes.bar(list(names), means)
    axes.set(ylabel="dev F1", title="CRAFT, by the length of the sentence")


def f1_classes(results: Sequence[Result]) -> list[dict[str, float]]:
    """Return the parser's dev F1 by length, per result that has it."""
    found = [
        classes_in(result.scores, "dev")
        for result in results
        if (result.system, result.scale) == (GOLD, "small")
    ]
    return [classes for classes in found if classes]


def classes_in(scores: Mapping[str, float], split: str) -> dict[str, float]:
    """Return the F1 of each class of lengths in a result file, shortest first."""
    pattern = re.compile(rf"F1, (\D*(\d+).*) \({split}\)")
    found = [
        (match, scores[match[0]]) for match in map(pattern.fullmatch, scores) if match
    ]
    found.sort(key=lambda pair: int(pair[0][2]))
    return {match[1]: f1 for match, f1 in found}


FIGURES = {
    "bleu_parameters": Figure(
        "Dev BLEU against the number of parameters, after ten thousand steps",
        lambda canvas, data: _draw_bleu_parameters(canvas, data.results),
    ),
    "learning_curves": Figure(
        "Dev nll during the training runs of forms",
        lambda canvas, data: draw_learning_curves(canvas, data.curves),
    ),
    "multi30k_ensemble": Figure(
        "Dev nll per token, and BLEU of greedy search, of the ensemble's members",
        _draw_ensemble,
    ),
    "branches": Figure(
        "Kappa and alpha of the second of two layers during training",
        lambda canvas, data: draw_branch_weights(canvas, data.curves),
    ),
    "losses": Figure(
        "Dev nll against training nll, every thousand updates",
        lambda canvas, data: losses.draw(canvas, data.curves),
    ),
    "attention_functions": Figure(
        "Dev perplexity of attention functions against the depth of keys",
        _draw_attention_functions,
    ),
    "f1_by_length": Figure(
        "F1 by the length of the sentence, default search: mean of the recipe's seeds",
        _draw_f1_by_length,
    ),
}
