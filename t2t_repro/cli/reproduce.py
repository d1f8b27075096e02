"""`t2t reproduce`: the papers' tables, published beside ours; or a run of one row."""

from __future__ import annotations

import argparse

from t2t_repro import catalogue
from t2t_repro.cli.flags import at_least
from t2t_repro.cli.train import LARGEST_SEED
from t2t_repro.errors import UsageError, unknown_name
from t2t_repro.reproduction.tables import TABLES, Row, Table, table

MEASURED_TABLE = "table1"  # by timing layers, in about two minutes
RUN_FLAGS = ("scale", "text_dir", "data_dir", "output_dir", "seed")
HOW_TO_LIST = "`t2t reproduce` lists the tables."


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser("reproduce", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        metavar="TABLE[/ROW]",
        help="what to show (default: the list of tables); all = every table. "
        f"{MEASURED_TABLE} is measured while you wait, about two minutes",
    )
    parser.add_argument(
        "--plot", metavar="FILE", help=f"also draw {MEASURED_TABLE}, as a PNG"
    )
    parser.add_argument(
        "--run", metavar="TABLE/ROW", help="train and score this row instead"
    )
    parser.add_argument(
        "--result_dir",
        metavar="DIR",
        help="folder of result files, beside the package's own; of a run: where its "
        "file goes (default: --output_dir)",
    )
    group = parser.add_argument_group("with --run")
    group.add_argument(
        "--scale",
        choices=("small", "paper"),
        help="small: a quarter of the widths, half the layers, Multi30k, two cores; "
        "paper: the real recipe, WMT 2014 English to German on 8 GPUs, which is only "
        "shown unless --data_dir and --output_dir are given (default: small)",
    )
    group.add_argument(
        "--text_dir",
        metavar="DIR",
        help="raw text of Multi30k, for table4 trees of CRAFT; for --scale small",
    )
    group.add_argument("--data_dir", metavar="DIR", help="folder of prepared data")
    group.add_argument("--output_dir", metavar="DIR", help="folder of the run")
    group.add_argument(
        "--seed",
        type=at_least(0, int, LARGEST_SEED),
        metavar="N",
        help="of weights, dropout and data order (default: 1)",
    )


def run(args: argparse.Namespace) -> int:
    """Show or run."""
    catalogue.load()
    if args.run is not None:
        return _run(args)
    for flag in RUN_FLAGS:
        if getattr(args, flag) is not None:
            raise UsageError(f"--{flag} goes with --run TABLE/ROW.")
    if args.plot is not None and (args.what or "").partition("/")[0] != MEASURED_TABLE:
        raise UsageError(f"--plot goes with {MEASURED_TABLE} alone.")
    if args.what is None:
        for known in TABLES:
            print(f"{known.name.ljust(14)}{known.title}")
        return 0
    if args.what.partition("/")[0] == MEASURED_TABLE:
        from t2t_repro.cli.complexity_report import print_measured_table

        print_measured_table(_shown(args.what), args.plot)
        return 0
    from t2t_repro.reproduction.render import render
    from t2t_repro.reproduction.results import results_with

    shown = TABLES if args.what == "all" else (_shown(args.what),)
    results = results_with(args.result_dir)
    print("\n\n".join(render(one, catalogue.hparams, results) for one in shown))
    return 0


def _run(args: argparse.Namespace) -> int:
    """Train and score a row.

    Raises:
        UsageError: If the row is not one to be trained, or flags do not go together.
    """
    from t2t_repro.cli.reproduction_run import run_row

    for flag, value in (("--plot", args.plot), ("a table", args.what)):
        if value is not None:
            raise UsageError(f"received --run and {flag}, expected one of them.")
    found, row = find_row(args.run)
    if found.name == MEASURED_TABLE:
        raise UsageError(f"nothing is trained: `t2t reproduce {args.run}` measures it.")
    args.scale = args.scale or "small"
    args.seed = 1 if args.seed is None else args.seed
    return run_row(found, row, args)


def _shown(what: str) -> Table:
    """Find a table, or one of a single row.

    Raises:
        UsageError: If there is no such table or row.
    """
    if "/" not in what:
        return find_table(what)
    found, row = find_row(what)
    return Table(found.name, found.title, found.columns, [row], found.notes)


def find_table(name: str) -> Table:
    """Find a table by its name.

    Raises:
        UsageError: If there is none.
    """
    found = table(name)
    if found is None:
        names = [known.name for known in TABLES]
        raise unknown_name("table", name, names, HOW_TO_LIST)
    return found


def find_row(name: str) -> tuple[Table, Row]:
    """Find a row by TABLE/ROW.

    Raises:
        UsageError: If there is none.
    """
    table_name, slash, row_name = name.partition("/")
    if not slash:
        raise UsageError(f"received {name!r}, expected TABLE/ROW. {HOW_TO_LIST}")
    found = find_table(table_name)
    row = found.row(row_name)
    if row is None:
        names = [known.name for known in found.rows]
        how = f"`t2t reproduce {table_name}` shows them."
        raise unknown_name("row", row_name, names, how)
    return found, row
