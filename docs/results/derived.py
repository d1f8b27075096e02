"""Numbers that the page of results derives from result files."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from results.seeds import SCORES, by_seed
from t2t_repro import catalogue
from t2t_repro.features.reproduction import recipes
from t2t_repro.features.reproduction.order_agreement import COVERAGE
from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.reproduction.result_files import Result
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams

# Wu et al. 2021, "Good for Misconceived Reasons", a Transformer of width 128 on
# Multi30k's test2016, en-de: BLEU of lower-cased tokens.
MULTI30K_BLEU = 41.02
PLAIN, WEIGHTED = "transformer_base", "weighted_transformer_base"
AROUND = f"{WEIGHTED}_around"  # the reading of earlier versions

# Rows of Table 3 whose heads or keys are too narrow at a quarter of the width.
TOO_NARROW = ("a_h32", "b_dk16")
# The paper's number of layers, or its large size -> the Transformer, and the Weighted
# Transformer.
SIZES = {
    "n2": (f"{PLAIN}_c_n2", "weighted_transformer_n2"),
    "n4": (f"{PLAIN}_c_n4", "weighted_transformer_n4"),
    "n6": (PLAIN, WEIGHTED),
    "n8": (f"{PLAIN}_c_n8", "weighted_transformer_n8"),
    "n8_equal_dropout": (f"{PLAIN}_c_n8", "weighted_transformer_n8_dropout1"),
    "big": ("transformer_big", "weighted_transformer_big"),
    "big_dropout1": ("transformer_big_dropout1", "weighted_transformer_big_dropout1"),
}


def parameter_share(
    results: Sequence[Result], system: str, other: str
) -> dict[str, float]:
    """Return the parameters of one system in percent of another's, as "share"."""
    sizes = {x.system: x.parameters for x in results if x.scale == "small"}
    return {"share": 100 * sizes[system] / sizes[other]}


def update_minutes(results: Sequence[Result]) -> dict[str, float]:
    """Return the shortest and longest time of a row's updates on CPUs, per scale.

    Returns:
        "small_low", "small_high", "long_low" and "long_high", in minutes.
    """
    numbers: dict[str, float] = {}
    for scale in ("small", "long"):
        minutes = [
            result.seconds / 60
            for result in results
            if result.scale == scale and "BLEU (dev)" in result.scores
            if not on_accelerator(result.versions)
        ]
        if minutes:
            numbers[f"{scale}_low"] = min(minutes)
            numbers[f"{scale}_high"] = max(minutes)
    return numbers


def on_accelerator(versions: Mapping[str, str]) -> bool:
    """Return whether JAX trained a system; see `benchmarks/accelerator/rows/`.

    Args:
        versions: Versions of the software, of a result or a curve.
    """
    return "jax" in versions


def accelerated(results: Sequence[Result]) -> dict[str, float | str]:
    """Describe the training runs of the long scale on an accelerator.

    Returns:
        "runs" and "rows": the numbers of training runs and of systems; "seconds_low"
        and "seconds_high": the shortest and longest time of the seeds of a system;
        "device": the kinds of accelerators.
    """
    own = [x for x in results if x.scale == "long" and on_accelerator(x.versions)]
    seconds = [result.seconds for result in own]
    return {
        "runs": len(own),
        "rows": len({result.system for result in own}),
        "seconds_low": min(seconds, default=0.0),
        "seconds_high": max(seconds, default=0.0),
        "device": ", ".join(
            sorted({x.hardware.partition(",")[0].removeprefix("1 x ") for x in own})
        ),
    }


def size_gaps(results: Sequence[Result], score: str) -> dict[str, float]:
    """Return how much better the Weighted Transformer scores, by size.

    Args:
        results: Results of any systems.
        score: Name of the score.

    Returns:
        By the names of `SIZES`, the difference between the means, weighted minus
        plain.
    """
    means = {
        name: [statistics.mean(by_seed(results, x, score).values()) for x in pair]
        for name, pair in SIZES.items()
    }
    return {name: weighted - plain for name, (plain, weighted) in means.items()}


def difference(results: Sequence[Result], first: str, second: str) -> dict[str, float]:
    """Describe the difference between two systems, first minus second.

    Returns:
        For each score, the difference between the means, the ends of its 95 %
        confidence interval, and the p-value of a permutation test of the seeds; and the
        number of seeds of each.
    """
    numbers: dict[str, float] = {}
    for score, name in SCORES.items():
        groups = [
            list(by_seed(results, system, score).values()) for system in (first, second)
        ]
        low, high = confidence_interval(*groups)
        numbers |= {
            name: statistics.mean(groups[0]) - statistics.mean(groups[1]),
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_p": permutation_test(*groups),
            "seeds": len(groups[0]),
            "other_seeds": len(groups[1]),
        }
    return numbers


def confidence_interval(
    first: Sequence[float], second: Sequence[float]
) -> tuple[float, float]:
    """Return the 95 % confidence interval of the difference between two means.

    Welch 1947. Without any variance, both ends are the difference; `scipy` warns if
    one group has none.

    Args:
        first: At least two scores of one system.
        second: At least two scores of the other, which are subtracted.
    """
    groups = first, second
    parts = [statistics.variance(group) / len(group) for group in groups]
    inverse = sum(
        part**2 / (len(group) - 1) for part, group in zip(parts, groups, strict=True)
    )
    middle = statistics.mean(first) - statistics.mean(second)
    if not inverse:
        return middle, middle
    degrees = sum(parts) ** 2 / inverse
    low, high = stats.t.interval(COVERAGE, degrees, middle, math.sqrt(sum(parts)))
    return float(low), float(high)


def permutation_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the exact two-sided p-value of the difference between two means.

    Fisher 1935: the share of the splits of all scores into groups of these sizes whose
    means differ at least as much.

    Args:
        first: Scores of one system, such as one per seed.
        second: Scores of the other; their number may differ.
    """
    test = stats.permutation_test(
        (first, second), _distance, n_resamples=np.inf, alternative="greater"
    )
    return float(test.pvalue)


def _distance(first: np.ndarray, second: np.ndarray, axis: int) -> np.ndarray:
    """Return how far two means are apart, rounded so that ties are equal."""
    return np.round(np.abs(np.mean(first, axis) - np.mean(second, axis)), 9)


def published_values() -> dict[str, float]:
    """Return published values, and differences between some, for the prose."""
    table = find_table("weighted")
    rows = {row.name: row.published for row in table.rows}
    steps = {row.name: row.train_steps or 0 for row in table.rows}
    base, weighted = rows["transformer_small"], rows["weighted_transformer_small"]
    sensitivity = {row.name: row for row in find_table("sensitivity").rows}
    randomisation = {
        row.name: row.published["BLEU"] for row in find_table("randomisation").rows
    }
    gains = {
        name: _minus(row.published["Weighted"], row.published["Transformer"])
        for name, row in sensitivity.items()
    }
    return {
        "gain_test": _minus(weighted["en-de"], base["en-de"]),
        "gain_dev": gains["base"],
        "gain_n8": gains["n8"],
        "gain_largest": max(gains.values()),
        "plain_steps": steps["transformer_small"],
        "weighted_steps": steps["weighted_transformer_small"],
        "multi30k": MULTI30K_BLEU,
        "added_weights": int(_published_figure("added_weights")),
        **{name: _number(bleu) for name, bleu in randomisation.items()},
        **{
            f"{name}_gap": _minus(randomisation[name], randomisation["learned"])
            for name in ("random", "uniform")
        },
    }


def _published_figure(name: str) -> str:
    """Return a figure of a paper's text."""
    figures = {row.name: row.published for row in find_table("text").rows}
    return str(figures[name]["published"])


def trained_depths() -> dict[str, int]:
    """Return the d_k that the small scale trains, by the paper's, such as "dk16"."""
    names = (row.name.partition("_") for row in find_table("attention").rows)
    depths = {name for _, _, name in names if name.startswith("dk")}
    return {x: int(x.removeprefix("dk")) // recipes.WIDTH_DIVISOR for x in depths}


def units_per_head() -> dict[str, int]:
    """Return the units per head at the small scale: `base`, and two narrow rows."""
    sets = {
        row: recipes.scaled(catalogue.hparams(f"{PLAIN}_{row}")) for row in TOO_NARROW
    } | {"base": recipes.scaled(catalogue.hparams(PLAIN))}
    paper = catalogue.hparams(f"{PLAIN}_a_h32").resolved()
    return {
        **{row: _head_units(hparams.resolved()) for row, hparams in sets.items()},
        "paper": _head_units(paper),
    }


def _head_units(hparams: HParams) -> int:
    return hparams.attention_key_channels // hparams.num_heads


def small_scale() -> dict[str, float]:
    """Return the sizes and the search of the small scale, which the long one shares."""
    search = DecodeHParams()
    return {
        "width_divisor": recipes.WIDTH_DIVISOR,
        "layers_divisor": recipes.LAYERS_DIVISOR,
        "subwords": int(recipes.TRANSLATION.vocab_size or 0),
        "steps": recipes.TRANSLATION.train_steps,
        "batch": recipes.scaled(catalogue.hparams(PLAIN)).batch_size,
        "beam": search.beam_size,
        "alpha": search.alpha,
    }


def long_scale() -> dict[str, float]:
    """Return the schedule of the long scale, and the small scale's peak."""
    small, long = (
        recipes.scaled(catalogue.hparams(PLAIN), scale) for scale in ("small", "long")
    )
    return {
        "steps": recipes.LONG_STEPS,
        "warmup": long.learning_rate_warmup_steps,
        "peak": _peak(long),
        "small_peak": _peak(small),
    }


def _peak(hparams: HParams) -> float:
    """Return the largest learning rate, at the end of the warm-up."""
    steps = hparams.learning_rate_warmup_steps
    return hparams.learning_rate_constant * (steps * hparams.hidden_size) ** -0.5


def _minus(first: Any, second: Any) -> float:
    return _number(first) - _number(second)


def _number(value: Any) -> float:
    return float(value)
