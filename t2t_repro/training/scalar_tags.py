"""Group the metrics in TensorBoard, and choose which charts come first.

`metrics.jsonl` keeps the short names. TensorBoard makes a section of every group.
"""

from __future__ import annotations

from tensorboard.plugins.custom_scalar import layout_pb2

BRANCHES_SPLIT = "branches"

_GROUPS = {
    "loss": ("loss", "nll", "perplexity"),
    "optimization": ("learning_rate", "branch_learning_rate", "gradient_norm"),
    "progress": ("epoch",),
    "throughput": (
        "source_tokens_per_second",
        "target_tokens_per_second",
        "target_tokens_per_step",
        "steps_per_second",
        "padding_share",
    ),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}
# Everything else is a score: "token_accuracy", and the metric of the problem.
_SCORES = "quality"

# Charts in the order of the tab "Custom Scalars": a title and the pattern of its tags.
_OVERVIEW = (
    ("Score of the dev translations", "quality/(?!token_accuracy$)"),
    ("Loss in nats per target token, without smoothing", "loss/nll$"),
    ("Share of dev tokens predicted correctly", "quality/token_accuracy$"),
    ("Learning rate", "optimization/(branch_)?learning_rate$"),
    ("Target tokens per second", "throughput/target_tokens_per_second$"),
    ("Norm of the gradient", "optimization/gradient_norm$"),
)
_BRANCHES = (
    ("kappa of the encoder", "encoder/.*/kappa/"),
    ("alpha of the encoder", "encoder/.*/alpha/"),
    ("kappa of the decoder", "decoder/.*/kappa/"),
    ("alpha of the decoder", "decoder/.*/alpha/"),
)


def scalar_tag(name: str) -> str:
    """Return the tag of a metric in TensorBoard, such as "loss/nll".

    Args:
        name: Name of the metric. A name with a slash has its group already.
    """
    return name if "/" in name else f"{_GROUP_OF.get(name, _SCORES)}/{name}"


def custom_layout(split: str) -> layout_pb2.Layout | None:
    """Return the charts that a split adds to the tab "Custom Scalars", or None.

    TensorBoard merges the layouts of all splits and runs.

    Args:
        split: Folder of events. "train" describes the charts of every training.
    """
    charts = {
        "train": ("Overview", _OVERVIEW),
        BRANCHES_SPLIT: ("Weighted Transformer", _BRANCHES),
    }
    if split not in charts:
        return None
    title, patterns = charts[split]
    category = layout_pb2.Category(title=title)
    for chart, pattern in patterns:
        multiline = layout_pb2.MultilineChartContent(tag=[pattern])
        category.chart.add(title=chart, multiline=multiline)
    return layout_pb2.Layout(category=[category])
