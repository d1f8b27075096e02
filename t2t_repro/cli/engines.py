"""Choose the engine that translates for a command.

An engine of a feature is a module with `HELP`, the names of its flags in `FLAGS`,
`add_flags(parser)`, and `load(args, hparams)`, which returns a `TranslatingSystem`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from t2t_repro.cli.loading import load_system
from t2t_repro.errors import UsageError
from t2t_repro.features import modules
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.runs import TranslatingSystem

TENSORFLOW = "tensorflow"


def add_engine_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the engine."""
    found = modules("engines")
    parser.add_argument(
        "--engine",
        choices=(TENSORFLOW, *found),
        default=TENSORFLOW,
        help="; ".join(
            [
                "tensorflow = the trained model itself (default)",
                *(f"{name} = {engine.HELP}" for name, engine in found.items()),
            ]
        ),
    )
    for engine in found.values():
        engine.add_flags(parser)


def load_translating_system(
    args: argparse.Namespace, hparams: DecodeHParams, *, parallel_batches: bool
) -> TranslatingSystem:
    """Load the trained system in the engine that the flags name.

    Args:
        args: Flags of `add_system_flags` and `add_engine_flags`.
        hparams: Settings of the search, to be checked.
        parallel_batches: See `load_system`.

    Raises:
        UserError: If the run, the checkpoint or the export is missing or damaged.
        UsageError: If flags contradict each other, or a setting does not fit.
    """
    found = modules("engines")
    refuse_flags_of_others(args, "engine", found)
    if args.engine != TENSORFLOW:
        return found[args.engine].load(args, hparams)
    return load_system(args, hparams, ensembles=True, parallel_batches=parallel_batches)


def refuse_flags_of_others(
    args: argparse.Namespace, chosen: str, choices: Mapping[str, ModuleType]
) -> None:
    """Refuse flags that have no effect with the chosen engine or format.

    Args:
        args: Flags of the command.
        chosen: Name of the flag that chooses: "engine" or "format".
        choices: The module of each choice, with its `FLAGS`.

    Raises:
        UsageError: If one of them is given without effect.
    """
    own = getattr(choices.get(getattr(args, chosen)), "FLAGS", ())
    for choice, module in choices.items():
        for name in module.FLAGS:
            if name not in own and getattr(args, name) is not None:
                raise UsageError(
                    f"received --{name} without --{chosen} {choice}, without which it "
                    "would have no effect."
                )
