"""Scores in depth: the score card, and whether a difference is more than chance."""

from t2t_repro.features import Command, Feature

FEATURE = Feature(
    commands={
        "compare": Command(
            "t2t_repro.features.scores.command_compare",
            "tell a better system from chance",
            before="average",
        )
    },
    reports=("t2t_repro.features.scores.command_card",),
)
