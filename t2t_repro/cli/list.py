"""`t2t list`: every registered name with one line on it."""

from __future__ import annotations

import argparse

from t2t_repro import catalogue, registry

KINDS = {
    "problems": (registry.problems, "NAME_rev swaps inputs and targets"),
    "hparams": (registry.hparams_sets, "`t2t show NAME` explains every value"),
    "models": (registry.models, "`t2t train --model NAME`"),
}


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Registers the command's flags."""
    parser = subparsers.add_parser("list", description=__doc__)
    parser.add_argument(
        "kind", nargs="?", choices=tuple(KINDS), help="what to list (default: all)"
    )
    parser.add_argument(
        "--t2t_usr_dir", metavar="DIR", help="your own package of registrations"
    )


def run(args: argparse.Namespace) -> int:
    """Prints one section a kind, or the bare names and lines of one kind."""
    catalogue.load(args.t2t_usr_dir)
    if args.kind:
        print("\n".join(_lines(KINDS[args.kind][0])))
        return 0
    sections = [
        "\n".join([f"{kind} ({hint})", *(f"  {line}" for line in _lines(registered))])
        for kind, (registered, hint) in KINDS.items()
    ]
    print("\n\n".join(sections))
    return 0


def _lines(registered: registry.Registry) -> list[str]:
    names = registered.names()
    width = max(map(len, names), default=0)
    return [f"{name:{width}}  {registered.entry(name).summary}" for name in names]
