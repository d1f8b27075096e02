"""Group the metrics in TensorBoard, and choose which charts come first.

`metrics.jsonl` keeps the short names. TensorBoard makes a section of every group.
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorboard.plugins.custom_scalar import layout_pb2

from t2t_repro.training.metrics_file import BRANCHES_SPLIT, TRAIN_SPLIT

_GROUPS = {
    "loss": ("loss", "nll", "perplexity"),
    "optimization": (
        "learning_rate",
        "branch_learning_rate",
        "gradient_norm",
        "skipped_updates",
        "loss_scale",
        "overflowed_updates",
    ),
    "progress": ("epoch",),
    "throughput": (
        "source_tokens_per_second",
        "target_tokens_per_second",
        "target_tokens_per_step",
        "steps_per_second",
        "padding_share",
        "compile_seconds",
        "compiled_updates",
    ),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}
# All others are scores: "token_accuracy", and the metric of the problem.
# TensorBoard sorts by name, and the scores come before the loss.
_SCORES = "evaluation"
# Kappa and alpha have names with slashes. This group is the last in the alphabet.
_WEIGHTS = "weights"

# Charts in the order of the tab "Custom Scalars": a title and the pattern of its tags.
_OVERVIEW = (
    ("Score of the dev translations", "evaluation/(?!token_accuracy$)"),
    ("Loss in nats per target token, without smoothing", "loss/nll$"),
    ("Share of dev tokens predicted correctly", "evaluation/token_accuracy$"),
    ("Learning rate", "optimization/(branch_)?learning_rate$"),
    ("Target tokens per second", "throughput/target_tokens_per_second$"),
    ("Norm of the gradient", "optimization/gradient_norm$"),
)
_BRANCHES = (
    ("kappa of the encoder", "weights/encoder/.*/kappa/"),
    ("alpha of the encoder", "weights/encoder/.*/alpha/"),
    ("kappa of the decoder", "weights/decoder/.*/kappa/"),
    ("alpha of the decoder", "weights/decoder/.*/alpha/"),
)


def scalar_tag(name: str) -> str:
    """Return the tag of a metric in TensorBoard, such as "loss/nll".

    Args:
        name: Name of the metric in `metrics.jsonl`.
    """
    group = _WEIGHTS if "/" in name else _GROUP_OF.get(name, _SCORES)
    return f"{group}/{name}"


def custom_layout(split: str) -> layout_pb2.Layout | None:
    """Return the charts that a split adds to the tab "Custom Scalars", or None.

    TensorBoard merges the layouts of all runs in the order of their names, and shows
    equal charts once. The layout of branches repeats the overview, which comes first.

    Args:
        split: Folder of events. "train" adds the charts of every training run.
    """
    overview = _category("Overview", _OVERVIEW)
    if split == TRAIN_SPLIT:
        return layout_pb2.Layout(category=[overview])
    if split == BRANCHES_SPLIT:
        branches = _category("Weighted Transformer", _BRANCHES)
        return layout_pb2.Layout(category=[overview, branches])
    return None


def _category(title: str, patterns: Iterable[tuple[str, str]]) -> layout_pb2.Category:
    charts = []
    for chart, pattern in patterns:
        multiline = layout_pb2.MultilineChartContent(tag=[pattern])
        charts.append(layout_pb2.Chart(title=chart, multiline=multiline))
    return layout_pb2.Category(title=title, chart=charts)
