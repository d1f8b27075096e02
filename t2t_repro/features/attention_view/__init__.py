"""Views of attention: pages, figures, alignments, and a tab of TensorBoard."""

from t2t_repro.features import Command, Feature

FEATURE = Feature(
    commands={
        "attention": Command(
            "t2t_repro.features.attention_view.command_attention",
            "show what every head attends to",
            before="average",
        )
    },
    evaluators=("t2t_repro.features.attention_view.attention_summaries",),
)
