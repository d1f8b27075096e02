"""`t2t decode`: translate files, or a stream line by line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_repro.cli.decode_files import (
    add_file_flags,
    input_names,
    open_inputs,
    output_names,
)
from t2t_repro.cli.decode_output import Summary, json_line, text_line
from t2t_repro.cli.engine import add_engine_flags, load_engine
from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.framework import warm_up
from t2t_repro.cli.live_input import LiveLines, TypedLines
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    add_output_format_flag,
    check_writable,
    write_lines,
)
from t2t_repro.cli.target_prefix import add_prefix_flag, read_prefixes
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.decoding.sentences import CHUNK_SIZE
from t2t_repro.errors import UsageError
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.runs import TranslatingSystem

DESCRIPTION = (
    "Translate lines. The output has as many lines as the input, in the same order; "
    "blank lines give empty ones. A terminal or a pipe is answered line by line while "
    "it stays open."
)

Source = list[str] | LiveLines | TypedLines


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, ensembles=True)
    add_file_flags(parser)
    add_output_format_flag(parser)
    add_engine_flags(parser)
    add_prefix_flag(parser)
    add_decode_hparams_flag(parser, "decode")


def run(args: argparse.Namespace) -> int:
    """Translate and write."""
    hparams = DecodeHParams().parse_for("decode", args.decode_hparams)
    as_json = args.output_format == "json"
    if as_json and hparams.write_beam_scores:
        raise UsageError(
            "received write_beam_scores=true and --output_format json, which always "
            "has the scores: leave one out."
        )
    inputs = input_names(args)
    outputs = output_names(args, inputs)
    for output in outputs:
        check_writable("--decode_to_file", output)
    # Report broken input before TensorFlow is imported and a model is loaded.
    sources = open_inputs(inputs)
    prefixes = read_prefixes(args, sources)
    system = load_engine(
        args, hparams, parallel_batches=not any(map(_is_terminal, sources))
    )
    if sys.stderr.isatty() or any(map(_must_wait, sources)):
        warm_up(system, hparams)
    hparams = system.with_problem_defaults(hparams)
    summary = Summary(hparams.beam_size if hparams.return_beams else 1)
    with _progress(sources) as progress:
        for source, output in zip(sources, outputs, strict=True):
            found = _translated(system, source, hparams, progress, prefixes)
            shown = output == STANDARD_STREAM and sys.stdout.isatty()
            lines = _lines(found, hparams, summary, as_json=as_json)
            write_lines(output, _without_bar(lines, progress) if shown else lines)
    summary.log()
    return 0


def _is_terminal(source: Source) -> bool:
    return not isinstance(source, list) and source.is_terminal


def _must_wait(source: Source) -> bool:
    return not isinstance(source, list) and source.must_wait


def _progress(sources: Sequence[Source]) -> Progress:
    """Show the progress of all sources, whose number of lines may be unknown."""
    weights: list[int] = []
    for source in sources:
        if not isinstance(source, list):
            return Progress(None, "sentence", draw_bar=not source.is_terminal)
        for start in range(0, len(source), CHUNK_SIZE):
            chunk = source[start : start + CHUNK_SIZE]
            # The longest sentences of a chunk are translated first.
            weights += sorted((1 + len(line) for line in chunk), reverse=True)
    warm = sys.stderr.isatty()
    return Progress(len(weights), "sentence", weights=weights, warm=warm)


def _translated(
    system: TranslatingSystem,
    source: Source,
    hparams: DecodeHParams,
    progress: Progress,
    prefixes: Sequence[str] | None,
) -> Iterator[tuple[str, list[Hypothesis]]]:
    """Yield every line with its hypotheses, in order."""
    chunks = [source] if isinstance(source, list) else source.chunks(CHUNK_SIZE)
    first = 0
    for chunk in chunks:
        found = system.hypotheses(
            chunk, hparams, progress.advance, prefixes=prefixes, first=first
        )
        yield from zip(chunk, found, strict=True)
        first += len(chunk)


def _lines(
    translated: Iterator[tuple[str, list[Hypothesis]]],
    hparams: DecodeHParams,
    summary: Summary,
    *,
    as_json: bool,
) -> Iterator[str]:
    """Format the hypotheses of every line."""
    from t2t_repro.runs import rank

    for number, (source, hypotheses) in enumerate(translated, start=1):
        summary.add(source, hypotheses)
        if as_json:
            yield json_line(number, rank(hypotheses, hparams))
        else:
            yield text_line(hypotheses, hparams)


def _without_bar(lines: Iterator[str], progress: Progress) -> Iterator[str]:
    """Erase the bar before a line is written to the same terminal."""
    for line in lines:
        progress.clear()
        yield line
