"""`t2t import`: make a run of a model that another program trained.

An origin is a module of a feature with `DESCRIPTION`, `HELP` (what `MODEL` is), its
flags in `FLAGS`, `add_flags(parser)`, and `run(args)`, which writes the run and prints
what it found.
"""

from __future__ import annotations

import argparse
import shlex

from t2t_repro.cli.engines import refuse_flags_of_others
from t2t_repro.features import modules
from t2t_repro.files import check_new_folder

_ORIGINS = modules("imports")
DESCRIPTION = (
    "Make a run of a model that another program trained: translate, evaluate, look at "
    "attention, export, continue training. "
    + " ".join(module.DESCRIPTION for module in _ORIGINS.values())
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    about = "; ".join(f"{name}: {module.HELP}" for name, module in _ORIGINS.items())
    parser.add_argument("model", metavar="MODEL", help=about)
    parser.add_argument(
        "--from",
        choices=tuple(_ORIGINS),
        required=True,
        help="program that trained the model",
    )
    parser.add_argument(
        "--output_dir", metavar="DIR", required=True, help="folder of the new run"
    )
    for module in _ORIGINS.values():
        module.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Import, and print the next commands."""
    refuse_flags_of_others(args, "from", _ORIGINS)
    check_new_folder(args.output_dir)
    _ORIGINS[getattr(args, "from")].run(args)  # a keyword of Python
    run_dir, export_dir = map(
        shlex.quote, (args.output_dir, f"{args.output_dir}/export")
    )
    print(
        f"\nNext:\n  t2t decode --output_dir {run_dir}\n"
        f"  t2t export --output_dir {run_dir} --export_dir {export_dir}"
    )
    return 0
