"""`t2t reproduce`: the papers' tables, published beside ours; or a run of one row."""

from __future__ import annotations

import argparse

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, unknown_name
from t2t_repro.reproduction.tables import TABLES, Row, Table, table

MEASURED_TABLE = "table1"  # by timing layers, in about two minutes
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
        "--scale",
        choices=("small", "paper"),
        default="small",
        help="small: a quarter of the widths, half the layers, Multi30k, two cores; "
        "paper: the real recipe (default: small)",
    )
    parser.add_argument(
        "--text_dir", metavar="DIR", help="Multi30k's raw text, for --scale small"
    )
    parser.add_argument("--data_dir", metavar="DIR", help="folder of prepared data")
    parser.add_argument("--output_dir", metavar="DIR", help="folder of the run")
    parser.add_argument(
        "--result_dir", metavar="DIR", help="where the result file goes (default: run)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the run (default: 1)"
    )


def run(args: argparse.Namespace) -> int:
    """Show or run."""
    catalogue.load()
    if args.run is not None:
        from t2t_repro.cli.reproduction_run import run_row

        return run_row(*find_row(args.run), args)
    if args.what is None:
        for known in TABLES:
            print(f"{known.name.ljust(14)}{known.title}")
        return 0
    if args.what.partition("/")[0] == MEASURED_TABLE:
        from t2t_repro.cli.complexity_report import print_measured_table

        print_measured_table(_shown(args.what), args.plot)
        return 0
    if args.plot is not None:
        raise UsageError(f"--plot goes with {MEASURED_TABLE} alone.")
    from t2t_repro.reproduction.render import render

    shown = TABLES if args.what == "all" else (_shown(args.what),)
    print("\n\n".join(render(one, catalogue.hparams) for one in shown))
    return 0


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
