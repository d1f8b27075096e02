"""`t2t reproduce`: the papers' tables, a run of one row, or the page of results."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro._checkout import make_results_importable
from t2t_repro.cli.flags import number_in_range
from t2t_repro.cli.loading import import_tensorflow
from t2t_repro.cli.streams import check_output
from t2t_repro.errors import UsageError
from t2t_repro.features.reproduction.comparison_report import comparison_report
from t2t_repro.features.reproduction.paper_tables import TABLES, Table, find_row, select
from t2t_repro.features.reproduction.recipes import REDUCED_SIZE
from t2t_repro.features.reproduction.report_writer import (
    FORMATS,
    Report,
    write_report,
    write_reports,
)
from t2t_repro.features.reproduction.result_files import results_with, shipped_course
from t2t_repro.features.reproduction.row_plan import RunFolders, check_folders, plan_of
from t2t_repro.progress import Progress
from t2t_repro.settings.train_settings import MAX_SEED
from t2t_repro.text_tables import aligned

MEASURED_TABLE = "table1"
# Each of these replaces the tables, as --run does.
ALTERNATIVES = ("table", "page", "record")
SHOW_FLAGS = ("plot", "format", "table")
PLOT_TYPES = (".png", ".pdf", ".svg")
RUN_FLAGS = ("scale", "text_dir", "data_dir", "output_dir", "seed")


DESCRIPTION = (
    "Show the papers' tables with the published numbers and ours, or train and "
    "score one row, or write the page of results."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "table",
        nargs="?",
        metavar="TABLE[/ROW]",
        help="table or row to show (default: the list of tables); all = every table "
        f"but {MEASURED_TABLE}, which is measured on request, in about two minutes",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="form of a table (default: text)"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help=f"also draw {MEASURED_TABLE} (.png, .pdf, .svg)"
    )
    parser.add_argument(
        "--page",
        metavar="FILE",
        help="instead write the page of results, docs/results.md, and beside it its "
        "tables and notebook, in the folder results, and its figures, in the folder "
        "figures; needs a checkout",
    )
    parser.add_argument(
        "--record",
        metavar="RUN",
        help="instead write the course of the finished run in this folder to a "
        "small file in --result_dir: dev nll, kappa and alpha; needs a checkout",
    )
    parser.add_argument(
        "--name", help="name of the training's setting, with --record; seeds share it"
    )
    parser.add_argument(
        "--run", metavar="TABLE/ROW", help="train and score this row instead"
    )
    parser.add_argument(
        "--result_dir",
        metavar="DIR",
        help="folder of result files to show with the package's own; with --run, the "
        "folder to write the result to (default: --output_dir); with --record, the "
        "folder to write to",
    )
    _add_run_flags(parser)


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with --run")
    group.add_argument(
        "--scale",
        choices=("small", "long", "paper"),
        help=f"small: {REDUCED_SIZE}, Multi30k, two cores; "
        "long: the same with 10,000 steps instead of 2,500 and half the learning rate, "
        "and with scores of the last checkpoint and of an average; "
        "paper: the paper's recipe, WMT 2014 on 8 GPUs; its commands are only printed "
        "unless --data_dir and --output_dir are given (default: small)",
    )
    group.add_argument(
        "--text_dir",
        metavar="DIR",
        help="folder of the raw text for --scale small and long: Multi30k, or for "
        "table4 trees of CRAFT",
    )
    group.add_argument("--data_dir", metavar="DIR", help="folder of prepared data")
    group.add_argument("--output_dir", metavar="DIR", help="folder of the run")
    group.add_argument(
        "--seed",
        type=number_in_range(0, int, MAX_SEED),
        metavar="N",
        help="random seed of weights, dropout and data order (default: 1)",
    )


def run(args: argparse.Namespace) -> int:
    """Show tables, run a row, record a training run, or write the page of results."""
    catalogue.load()
    if args.run is not None:
        return _run_row(args)
    if args.record is not None or args.name is not None:
        return _record(args)
    if args.page is not None:
        return _write_page(args)
    _check_show_flags(args)
    form = args.format or "text"
    if args.table is None:
        print("\n".join(aligned([(table.name, table.title) for table in TABLES])))
    elif args.table == "all":
        print(write_reports([_compare(table, args) for table in TABLES], form))
    elif (table := select(args.table)).name == MEASURED_TABLE:
        print(write_report(_measure(table, args.plot), form))
    else:
        print(write_report(_compare(table, args), form))
    return 0


def _check_show_flags(args: argparse.Namespace) -> None:
    """Refuse flags that cannot be combined.

    Raises:
        UsageError: If a flag needs --run or another table.
    """
    for flag in RUN_FLAGS:
        if getattr(args, flag) is not None:
            raise UsageError(f"--{flag} needs --run TABLE/ROW.")
    if args.format is not None and args.table is None:
        raise UsageError("--format needs a table.")
    measured = (args.table or "").partition("/")[0] == MEASURED_TABLE
    if args.result_dir is not None and (args.table is None or measured):
        raise UsageError("--result_dir needs a table with scores.")
    if args.plot is None:
        return
    if not measured:
        raise UsageError(f"--plot needs {MEASURED_TABLE}.")
    without = "pip install matplotlib, or leave the plot out"
    check_file("--plot", args.plot, PLOT_TYPES, ["matplotlib"], without)


def check_file(
    flag: str, path: str, types: Sequence[str], packages: Sequence[str], advice: str
) -> None:
    """Check, before any work, that packages can write a file.

    Args:
        flag: The flag that names the file.
        path: Name of the file.
        types: Endings that its name may have.
        packages: The packages that it needs.
        advice: What to do if one is not installed.

    Raises:
        UsageError: If the name has another ending, or a package is not installed.
        UserError: If the folder is missing or not writable.
    """
    if not path.endswith(tuple(types)):
        raise UsageError(
            f"received {flag} {path}, expected a file name in {', '.join(types)}."
        )
    check_output(flag, path)
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{flag} needs {' and '.join(missing)}, not installed here: {advice}."
        )


def _compare(table: Table, args: argparse.Namespace) -> Report:
    results = results_with(args.result_dir)
    return comparison_report(table, catalogue.hparams, results, shipped_course())


def _measure(table: Table, plot: str | None) -> Report:
    """Measure the layers of a table, and draw the times if asked."""
    import_tensorflow()
    from t2t_repro.features.reproduction.complexity_report import (
        complexity_report,
        layers_of,
        measure_layers,
        plot_complexity,
    )

    kinds = layers_of(table)
    with Progress(len(kinds), "layer") as progress:
        results = measure_layers(kinds, progress.advance)
    if plot is not None:
        plot_complexity(results, plot)
    return complexity_report(table, results)


def _write_page(args: argparse.Namespace) -> int:
    """Write the page of results, its appendix and its figures.

    Raises:
        UsageError: If flags cannot be combined, if this is not a checkout, or if a
            package is not installed.
    """
    _refuse_others("--page", args, (*SHOW_FLAGS, *RUN_FLAGS))
    _require_checkout("--page")
    packages, advice = ["matplotlib", "scipy"], "pip install -e '.[results]'"
    check_file("--page", args.page, [".md"], packages, advice)
    from results.pages import write_pages

    for path in write_pages(args.page, results_with(args.result_dir)):
        print(path)
    return 0


def _record(args: argparse.Namespace) -> int:
    """Write the learning curve of a training run.

    Raises:
        UsageError: If a flag is missing, if flags cannot be combined, or if this is not
            a checkout.
    """
    _refuse_others("--record", args, (*SHOW_FLAGS, *RUN_FLAGS, "page"))
    for flag in ("record", "name", "result_dir"):
        if getattr(args, flag) is None:
            raise UsageError(
                f"--{flag} is missing: expected --record RUN --name NAME --result_dir "
                "DIR."
            )
    _require_checkout("--record")
    from results.curves import curve_of

    print(curve_of(args.record, args.name).save(args.result_dir))
    return 0


def _require_checkout(flag: str) -> None:
    """Make the package `results` of a checkout importable.

    Raises:
        UsageError: If the package is installed without a checkout.
    """
    if not make_results_importable():
        raise UsageError(
            f"{flag} needs a checkout of the repository: its folder docs/results/ is "
            "not part of an installed package."
        )


def _refuse_others(
    flag: str, args: argparse.Namespace, others: tuple[str, ...]
) -> None:
    """Refuse arguments that do not belong to a flag.

    Raises:
        UsageError: If one of them was given.
    """
    for other in others:
        if getattr(args, other) is None:
            continue
        if other in ALTERNATIVES:
            name = "a table" if other == "table" else f"--{other}"
            raise UsageError(f"received {flag} and {name}, expected one of them.")
        raise UsageError(f"--{other} has no effect with {flag}: leave it out.")


def _run_row(args: argparse.Namespace) -> int:
    """Train and score a row, or print the commands of the paper's recipe.

    Raises:
        UsageError: If the row cannot be trained, or flags cannot be combined.
    """
    _refuse_others("--run", args, (*SHOW_FLAGS, "page", "record", "name"))
    seed = 1 if args.seed is None else args.seed
    plan = plan_of(*find_row(args.run), args.scale or "small", seed)
    if plan.scale == "paper" and args.data_dir is None and args.output_dir is None:
        print("\n".join(plan.commands()))
        return 0
    for flag in ("data_dir", "output_dir"):
        if getattr(args, flag) is None:
            raise UsageError(f"--{flag} is missing: --scale {plan.scale} needs it.")
    folders = RunFolders(
        data_dir=Path(args.data_dir),
        output_dir=Path(args.output_dir),
        text_dir=args.text_dir and Path(args.text_dir),
        result_dir=args.result_dir and Path(args.result_dir),
    )
    check_folders(plan, folders)
    import_tensorflow()
    from t2t_repro.features.reproduction.run_row import run_row

    for path in run_row(plan, folders):
        print(path)
    return 0
