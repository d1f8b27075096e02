"""`t2t attention`: show what every head of a trained system attends to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.streams import check_writable, read_input, write_lines
from t2t_repro.errors import UsageError, UserError
from t2t_repro.progress import Progress
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.runs import System
    from t2t_repro.visualization.attention import Attention

MAX_PAGE_SENTENCES = 50
DESCRIPTION = (
    "Show the attention of every layer and head, for given sentences and their "
    "translations, in one HTML file that needs no network."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser)
    parser.add_argument("--source", metavar="TEXT", help="a sentence to translate")
    parser.add_argument(
        "--target",
        metavar="TEXT",
        help="its translation (default: the system's own)",
    )
    parser.add_argument(
        "--decode_from_file",
        metavar="FILE",
        help="sentences to translate, one per line, in place of --source; - = standard "
        "input",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        required=True,
        help="page to write; - = standard output",
    )
    add_decode_hparams_flag(parser, "attention")


def run(args: argparse.Namespace) -> int:
    """Capture the attention and write the page."""
    hparams = DecodeHParams().parse_for("attention", args.decode_hparams)
    check_writable("--html", args.html)
    sources = _sources(args)
    Run.load_existing(args.output_dir)  # A mistyped folder is answered at once.
    import_tensorflow()
    from t2t_repro.runs import System
    from t2t_repro.visualization.page import html_page

    system = System.load(args.output_dir, args.checkpoint_path, args.t2t_usr_dir)
    captured = list(_captured(system, sources, args.target, hparams))
    title = f"{system.run.hparams_set} on {system.run.problem}"
    page = html_page([attention.to_document() for attention in captured], title)
    write_lines(args.html, [page])
    return 0


def _sources(args: argparse.Namespace) -> list[str]:
    """Return the sentences that the flags name.

    Raises:
        UsageError: If the flags contradict each other.
        UserError: If a file has no sentences, or too many for a page.
    """
    if (args.source is None) == (args.decode_from_file is None):
        raise UsageError("give either --source or --decode_from_file.")
    if args.source is not None:
        return [args.source]
    if args.target is not None:
        raise UsageError("--target belongs to --source: leave it out.")
    lines = [line for line in read_input(args.decode_from_file) if line.strip()]
    if not 1 <= len(lines) <= MAX_PAGE_SENTENCES:
        raise UserError(
            f"received {len(lines)} sentences in {args.decode_from_file}, expected "
            f"1 to {MAX_PAGE_SENTENCES} for a page."
        )
    return lines


def _captured(
    system: System, sources: list[str], target: str | None, hparams: DecodeHParams
) -> Iterator[Attention]:
    with Progress(len(sources), "sentence") as progress:
        for number, source in enumerate(sources, start=1):
            try:
                yield system.attention(source, target, hparams)
            except UserError as error:
                if len(sources) == 1:
                    raise
                raise UserError(f"sentence {number}: {error}") from error
            progress.advance(1)
