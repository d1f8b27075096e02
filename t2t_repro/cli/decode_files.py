"""Input and output files of `t2t decode`.

tensor2tensor translates one file per process; its `t2t-translate-all` writes into a
folder, `--translations_dir`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.cli.live_input import LiveLines, TypedLines
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_read_once,
    check_replaces_no_input,
    open_input,
    read_input,
)
from t2t_repro.errors import UsageError, UserError


def add_file_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name files."""
    parser.add_argument(
        "--decode_from_file",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="UTF-8 text, plain or .gz, one sentence per line; - = standard input "
        "(default); the model is loaded once for several files",
    )
    parser.add_argument(
        "--decode_to_file",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="file for the translations, plain or .gz, one per input file; - = "
        "standard output (default)",
    )
    parser.add_argument(
        "--translations_dir",
        metavar="DIR",
        help="existing folder for the translations instead; each file is named like "
        "its input, without .gz",
    )


def input_names(args: argparse.Namespace) -> list[str]:
    """Return the names of the inputs.

    Raises:
        UsageError: If standard input is named twice.
    """
    names = args.decode_from_file or [STANDARD_STREAM]
    check_read_once([*names, args.target_prefix])
    return names


def output_names(args: argparse.Namespace, inputs: Sequence[str]) -> list[str]:
    """Return the name of the output of each input.

    Raises:
        UsageError: If the inputs and outputs do not match one to one.
    """
    if args.translations_dir is not None:
        outputs = _names_in_folder(args, inputs)
    else:
        outputs = args.decode_to_file or [STANDARD_STREAM]
    flag = "--decode_to_file" if args.translations_dir is None else "--translations_dir"
    for output in outputs:
        check_replaces_no_input(flag, output, [*inputs, args.target_prefix])
    if len(outputs) != len(inputs):
        raise UsageError(
            f"received {len(inputs)} --decode_from_file and "
            f"{len(args.decode_to_file or [])} "
            "--decode_to_file, expected one output per input, or --translations_dir."
        )
    places = [str(Path(name).resolve()) for name in outputs if name != STANDARD_STREAM]
    places += [name for name in outputs if name == STANDARD_STREAM]
    name, count = Counter(places).most_common(1)[0]
    if count > 1:
        raise UsageError(
            f"received {count} inputs whose translations would go to {name}, expected "
            "different names: give each its own --decode_to_file."
        )
    return outputs


def _names_in_folder(args: argparse.Namespace, inputs: Sequence[str]) -> list[str]:
    if args.decode_to_file:
        raise UsageError("give either --decode_to_file or --translations_dir.")
    if STANDARD_STREAM in inputs:
        raise UsageError(
            "standard input has no name for a file in --translations_dir: give "
            "--decode_to_file."
        )
    folder = Path(args.translations_dir)
    if not folder.is_dir():
        raise UserError(
            f"received --translations_dir {folder}, expected an existing folder."
        )
    return [str(folder / Path(name).name.removesuffix(".gz")) for name in inputs]


def open_inputs(names: Sequence[str]) -> list[list[str] | LiveLines | TypedLines]:
    """Read the inputs. A single one may be a stream that stays open.

    Raises:
        UserError: If one cannot be read, or is not UTF-8 text.
    """
    if len(names) == 1:
        return [open_input(names[0])]
    return [read_input(name) for name in names]
