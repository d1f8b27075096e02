"""`t2t plan`: the size and cost of a training run, before it begins."""

from t2t_repro.features import Command, Feature

FEATURE = Feature(
    commands={
        "plan": Command(
            "t2t_repro.features.planning.command_plan",
            "print what a run will cost, before it begins",
            before="train",
        )
    }
)
