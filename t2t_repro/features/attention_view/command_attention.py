"""`t2t attention`: show what every head of a trained system attends to."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.flags import (
    add_decode_hparams_flag,
    add_system_flags,
    number_in_range,
)
from t2t_repro.cli.loading import load_system, warm_up
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_output,
    check_read_once,
    check_replaces_no_input,
    read_input,
    write_lines,
)
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.attention_view import paper_figures
from t2t_repro.features.attention_view.panels import check_matplotlib
from t2t_repro.files import atomic_write
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import check_same_length, is_blank

if TYPE_CHECKING:
    from t2t_repro.features.attention_view.alignments import AlignmentHeads
    from t2t_repro.features.attention_view.sentence_attention import Attention
    from t2t_repro.runs import System

logger = logging.getLogger(__name__)


MAX_PAGE_SENTENCES = 50
DESCRIPTION = (
    "Show the attention of a trained system: every layer and head in one HTML file, "
    "the paper's figures, or word alignments."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser)
    _add_text_flags(parser)
    outputs = parser.add_mutually_exclusive_group(required=True)
    outputs.add_argument(
        "--html", metavar="FILE", help="page to write; - = standard output"
    )
    outputs.add_argument(
        "--figure",
        type=int,
        choices=(3, 4, 5),
        help="figure of the paper to draw (default sentence: the paper's)",
    )
    outputs.add_argument(
        "--alignments",
        metavar="FILE",
        help='word alignments to write, one line "0-0 1-2" per sentence pair; - = '
        "standard output",
    )
    figures = parser.add_argument_group("figures and alignments")
    figures.add_argument(
        "--figure_dir",
        metavar="DIR",
        help="folder of figure_N.svg and figure_N.pdf (default: the run's folder)",
    )
    figures.add_argument(
        "--layer",
        metavar="N",
        type=number_in_range(1, int),
        help="layer, from 1 (default of figures: the last but one; of alignments: "
        "chosen on the dev data)",
    )
    figures.add_argument(
        "--heads", metavar="N,N", type=_numbers, help="heads of the layer, from 1"
    )
    figures.add_argument(
        "--word", help="word of figure 3 or 4 that attends, or its position from 1"
    )
    figures.add_argument(
        "--kind",
        choices=("encoder_self", "decoder_self", "memory"),
        help="attention of a figure; memory = the decoder's attention to the encoder's "
        "output (default: encoder_self)",
    )
    figures.add_argument(
        "--data_dir",
        metavar="DIR",
        help="prepared data to choose the heads of alignments by (default: the data "
        "that the run was trained on)",
    )
    add_decode_hparams_flag(parser, "attention")


def _add_text_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="TEXT", help="a sentence")
    parser.add_argument(
        "--target",
        metavar="TEXT",
        help="its translation (default: the system's own)",
    )
    parser.add_argument(
        "--decode_from_file",
        metavar="FILE",
        help="sentences, one per line, in place of --source; - = standard input",
    )
    parser.add_argument(
        "--target_file",
        metavar="FILE",
        help="their translations, line by line (default: the system's own)",
    )


def _numbers(text: str) -> list[int]:
    numbers = [int(number) for number in text.split(",") if number.strip().isdecimal()]
    if len(numbers) != len(text.split(",")) or len({0, *numbers}) <= len(numbers):
        raise argparse.ArgumentTypeError(
            f"received {text!r}, expected different numbers from 1, such as 1,2"
        )
    return numbers


def run(args: argparse.Namespace) -> int:
    """Capture the attention, and write what was asked for."""
    hparams = DecodeHParams().parse_for("attention", args.decode_hparams)
    _check_flags(args)
    sources, targets = _texts(args)
    system = load_system(args, hparams)
    if targets is None and sys.stderr.isatty():
        warm_up(system, hparams)
    if args.html is not None:
        write_page(args.html, system, _capture(system, sources, targets, hparams))
    elif args.figure is not None:
        (attention,) = _capture(system, sources, targets, hparams)
        write_figure(args, attention)
    else:
        write_alignments(args, system, sources, targets, hparams)
    return 0


def _check_flags(args: argparse.Namespace) -> None:
    """Refuse flags that contradict each other or would have no effect.

    Raises:
        UsageError: If there are such flags.
        UserError: If an output cannot be written.
    """
    readers = {
        "figure_dir": ("figure",),
        "word": ("figure",),
        "kind": ("figure",),
        "layer": ("figure", "alignments"),
        "heads": ("figure", "alignments"),
        "data_dir": ("alignments",),
    }
    for name, outputs in readers.items():
        if getattr(args, name) is not None and not any(
            getattr(args, output) is not None for output in outputs
        ):
            flags = " and ".join(f"--{output}" for output in outputs)
            raise UsageError(f"--{name} belongs to {flags}: leave it out.")
    if args.figure is not None:
        check_matplotlib()
    if args.figure == 5 and args.word is not None:
        raise UsageError("--word belongs to --figure 3 and 4: leave it out.")
    if args.alignments is not None and args.heads and args.layer is None:
        raise UsageError("--heads of --alignments needs --layer.")
    if args.data_dir is not None and args.layer is not None:
        raise UsageError(
            "--data_dir serves to choose the heads of --alignments, which --layer "
            "gives: leave out one of the two."
        )
    if args.decode_hparams and (args.target or args.target_file):
        raise UsageError("--decode_hparams would have no effect on given translations.")
    if args.figure_dir is not None and Path(args.figure_dir).is_file():
        raise UserError(f"received --figure_dir {args.figure_dir}, expected a folder.")
    inputs = (args.decode_from_file, args.target_file)
    check_read_once(inputs)
    for flag in ("html", "alignments"):
        if getattr(args, flag) is not None:
            check_output(f"--{flag}", getattr(args, flag))
            check_replaces_no_input(f"--{flag}", getattr(args, flag), inputs)


def _texts(args: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    """Return the sources, and their targets or None for the system's own.

    Raises:
        UsageError: If the flags contradict each other.
        UserError: If a file cannot be read, or does not have the expected sentences.
    """
    if args.target is not None and args.source is None:
        raise UsageError("--target belongs to --source.")
    if args.target_file is not None and args.decode_from_file is None:
        raise UsageError("--target_file belongs to --decode_from_file.")
    if args.source is not None and args.decode_from_file is not None:
        raise UsageError("give either --source or --decode_from_file, not both.")
    if args.source is not None:
        return [args.source], None if args.target is None else [args.target]
    if args.decode_from_file is not None:
        return _lines_of_files(args)
    if args.figure is None:
        raise UsageError("give --source or --decode_from_file.")
    return [paper_figures.PAPER_SENTENCES[args.figure]], None


def _lines_of_files(args: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    sources = read_input(args.decode_from_file)
    targets = None if args.target_file is None else read_input(args.target_file)
    if targets is not None:
        check_same_length(sources, targets)
    if args.alignments is not None:
        return sources, targets
    # A page and a figure have no place for a blank line.
    kept = [number for number, source in enumerate(sources) if not is_blank(source)]
    most = 1 if args.html is None else MAX_PAGE_SENTENCES
    if not 1 <= len(kept) <= most:
        raise UserError(
            f"received {len(kept)} sentences in --decode_from_file, expected "
            + ("1 for a figure." if most == 1 else f"1 to {most} for a page.")
        )
    return (
        [sources[number] for number in kept],
        None if targets is None else [targets[number] for number in kept],
    )


def _capture(
    system: System,
    sources: list[str],
    targets: list[str] | None,
    hparams: DecodeHParams,
) -> Iterator[Attention]:
    with Progress(len(sources), "sentence") as progress:
        for number, source in enumerate(sources):
            target = None if targets is None else targets[number]
            try:
                yield system.attention(source, target, hparams)
            except UserError as error:
                # Name what the user did not give on the command line.
                if source in paper_figures.PAPER_SENTENCES.values():
                    raise UserError(f"the paper's sentence: {error}") from error
                if len(sources) > 1:
                    raise UserError(f"sentence {number + 1}: {error}") from error
                raise
            progress.advance(1)


def write_page(name: str, system: System, captured: Iterable[Attention]) -> None:
    """Write the page of several sentences, and print the name of the file."""
    from t2t_repro.features.attention_view.sentence_attention import html_page

    title = f"{system.run.hparams_set} on {system.run.problem}"
    page = html_page([attention.to_document() for attention in captured], title)
    write_lines(name, [page])
    if name != STANDARD_STREAM:
        print(name)


def write_figure(args: argparse.Namespace, attention: Attention) -> None:
    """Write a figure of the paper as SVG and PDF, and print the names of the files.

    Raises:
        UserError: If a file cannot be written, or the model has no such attention.
    """
    given = {name: getattr(args, name) for name in ("kind", "layer", "heads", "word")}
    draw = getattr(paper_figures, f"figure_{args.figure}")
    figure = draw(attention, **{k: v for k, v in given.items() if v is not None})
    logger.info("figure %d: %s", args.figure, figure.description)
    folder = Path(args.figure_dir or args.output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for form, content in (("svg", figure.to_svg()), ("pdf", figure.to_pdf())):
            path = folder / f"figure_{args.figure}.{form}"
            atomic_write(path, content)
            print(path)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}.") from error


def write_alignments(
    args: argparse.Namespace,
    system: System,
    sources: list[str],
    targets: list[str] | None,
    hparams: DecodeHParams,
) -> None:
    """Write the word alignments of every sentence pair, one line each."""
    from t2t_repro.features.attention_view.alignments import align_pairs, pharaoh

    heads = _alignment_heads(args, system)
    logger.info("aligning by %s", heads)
    with Progress(len(sources), "sentence") as progress:
        links = align_pairs(
            system, sources, targets, heads, hparams, advance=progress.advance
        )
        write_lines(args.alignments, map(pharaoh, links))


def _alignment_heads(args: argparse.Namespace, system: System) -> AlignmentHeads:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.features.attention_view.alignments import (
        AlignmentHeads,
        choose_alignment_heads,
    )

    if args.layer is not None:
        every = range(1, system.run.hparams.num_heads + 1)
        return AlignmentHeads(args.layer, tuple(args.heads or every))
    data_dir = args.data_dir or system.data_dir
    if data_dir is None:
        raise UsageError("--data_dir is missing, expected the prepared data.")
    return choose_alignment_heads(system, PreparedData.load(data_dir, system.problem))
