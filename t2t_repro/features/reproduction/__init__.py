"""The tables of the two papers: published values beside our measurements."""

from t2t_repro.features import Command, Feature

FEATURE = Feature(
    commands={
        "reproduce": Command(
            "t2t_repro.features.reproduction.command_reproduce",
            "the papers' tables beside our scores",
        )
    },
    uses=("parsing",),
)
