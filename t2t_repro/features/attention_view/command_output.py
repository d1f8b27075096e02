"""Write the outputs of `t2t attention`: a page, a figure, or word alignments."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.streams import STANDARD_STREAM, write_lines
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.features.attention_view.alignments import AlignmentHeads
    from t2t_repro.features.attention_view.attention import Attention
    from t2t_repro.features.attention_view.paper_figures import Figure
    from t2t_repro.runs import System

logger = logging.getLogger(__name__)


def write_page(name: str, system: System, captured: Iterable[Attention]) -> None:
    """Write the page of several sentences, and print the name of the file."""
    from t2t_repro.features.attention_view.attention_page import html_page

    title = f"{system.run.hparams_set} on {system.run.problem}"
    page = html_page([attention.to_document() for attention in captured], title)
    write_lines(name, [page])
    if name != STANDARD_STREAM:
        print(name)


def _figure(args: argparse.Namespace, attention: Attention) -> Figure:
    from t2t_repro.features.attention_view.paper_figures import (
        figure_3,
        figure_4,
        figure_5,
    )

    kind = args.kind or "encoder_self"
    if args.figure == 5:
        return figure_5(attention, kind=kind, layer=args.layer, heads=args.heads)
    draw = figure_3 if args.figure == 3 else figure_4
    return draw(
        attention, kind=kind, layer=args.layer, heads=args.heads, word=args.word
    )


def write_figure(args: argparse.Namespace, attention: Attention) -> None:
    """Write a figure of the paper as SVG and PDF, and print the names of the files.

    Raises:
        UserError: If a file cannot be written, or the model has no such attention.
    """
    figure = _figure(args, attention)
    logger.info("figure %d: %s", args.figure, figure.description)
    folder = Path(args.figure_dir or args.output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"figure_{args.figure}.svg"
        atomic_write(path, figure.to_svg())
        print(path)
        _write_pdf(path.with_suffix(".pdf"), figure)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}.") from error


def _write_pdf(path: Path, figure: Figure) -> None:
    """Write a figure as PDF; without one, leave no older file beside the new SVG."""
    from t2t_repro.features.attention_view.pdf import MissingCharacter

    try:
        atomic_write(path, figure.to_pdf())
        print(path)
    except MissingCharacter as error:
        path.unlink(missing_ok=True)
        logger.warning("no PDF: %s", error)


def write_alignments(
    args: argparse.Namespace,
    system: System,
    sources: list[str],
    targets: list[str] | None,
    hparams: DecodeHParams,
) -> None:
    """Write the word alignments of every sentence pair, one line each."""
    from t2t_repro.features.attention_view.alignment_heads import align_pairs
    from t2t_repro.features.attention_view.alignments import pharaoh

    heads = _alignment_heads(args, system)
    logger.info("aligning by %s", heads)
    with Progress(len(sources), "sentence") as progress:
        links = align_pairs(
            system, sources, targets, heads, hparams, advance=progress.advance
        )
        write_lines(args.alignments, map(pharaoh, links))


def _alignment_heads(args: argparse.Namespace, system: System) -> AlignmentHeads:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.features.attention_view.alignment_heads import choose_alignment_heads
    from t2t_repro.features.attention_view.alignments import AlignmentHeads

    if args.layer is not None:
        every = range(1, system.run.hparams.num_heads + 1)
        return AlignmentHeads(args.layer, tuple(args.heads or every))
    data_dir = args.data_dir or system.run.data_dir
    return choose_alignment_heads(system, PreparedData.load(data_dir, system.problem))
