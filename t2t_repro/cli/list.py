"""`t2t list`: every registered name with a summary."""

from __future__ import annotations

import argparse

from t2t_repro import registry
from t2t_repro.cli.flags import add_usr_dir_flag
from t2t_repro.cli.loading import load_catalogue
from t2t_repro.cli.streams import table_lines

KINDS = {
    "problems": (registry.problems, "NAME_rev swaps inputs and targets"),
    "hparams": (registry.hparams_sets, "`t2t show NAME` explains every value"),
    "models": (registry.models, "`t2t train --model NAME`"),
    "attentions": (
        registry.attentions,
        "`t2t train --hparams self_attention_type=NAME`",
    ),
}


DESCRIPTION = "List every registered name with a summary."


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "kind", nargs="?", choices=tuple(KINDS), help="what to list (default: all)"
    )
    add_usr_dir_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Print one section per kind, or only the names and summaries of one kind."""
    load_catalogue(args.t2t_usr_dir)
    if args.kind:
        print("\n".join(_lines(KINDS[args.kind][0])))
        return 0
    sections = [
        "\n".join([f"{kind} ({hint})", *_lines(registered, indent="  ")])
        for kind, (registered, hint) in KINDS.items()
    ]
    print("\n\n".join(sections))
    return 0


def _lines(registered: registry.Registry, indent: str = "") -> list[str]:
    rows = [
        (f"{indent}{name}", registered.entry(name).summary)
        for name in registered.names()
    ]
    return table_lines(rows)
