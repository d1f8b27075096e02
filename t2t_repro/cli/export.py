"""`t2t export`: write a trained system for other programs.

A format is a module of a feature with `DESCRIPTION`, `HELP` (its requirements), the
names of its flags in `FLAGS`, `add_flags(parser)`, and `run(args, hparams)`, which
exports and prints how to use the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import ModuleType

from t2t_repro.cli.engines import refuse_flags_of_others
from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.features import modules
from t2t_repro.settings.decode_hparams import DecodeHParams

DEFAULT_FORMAT = "saved_model"


def _default_first(formats: Mapping[str, ModuleType]) -> list[str]:
    return sorted(formats, key=lambda name: name != DEFAULT_FORMAT)


DESCRIPTION = " ".join(
    modules("exports")[name].DESCRIPTION for name in _default_first(modules("exports"))
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, ensembles=True)
    parser.add_argument(
        "--export_dir", metavar="DIR", required=True, help="folder to create"
    )
    found = modules("exports")
    names = _default_first(found)
    notes = [
        f"{name} needs {module.HELP}" for name, module in found.items() if module.HELP
    ]
    parser.add_argument(
        "--format",
        choices=names,
        default=names[0],
        help="; ".join([f"format of the export (default: {names[0]})", *notes]),
    )
    for module in found.values():
        module.add_flags(parser)
    add_decode_hparams_flag(parser, "export")


def run(args: argparse.Namespace) -> int:
    """Export, and print how to use the result."""
    hparams = DecodeHParams().parse_for("export", args.decode_hparams)
    found = modules("exports")
    refuse_flags_of_others(args, "format", found)
    found[args.format].run(args, hparams)
    return 0
