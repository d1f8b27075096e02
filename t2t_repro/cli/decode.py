"""`t2t decode`: translate files, or a stream line by line."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.engines import (
    TENSORFLOW,
    add_engine_flags,
    load_translating_system,
)
from t2t_repro.cli.flags import add_decode_hparams_flag, add_system_flags
from t2t_repro.cli.loading import warm_up
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    LiveLines,
    TypedLines,
    add_output_format_flag,
    check_output,
    check_read_once,
    check_replaces_no_input,
    open_input,
    read_input,
    write_lines,
)
from t2t_repro.decoding.hypothesis import Hypothesis, count_repairs
from t2t_repro.decoding.sentences import CHUNK_SIZE
from t2t_repro.errors import UsageError, UserError
from t2t_repro.progress import Progress
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.lines import as_line, check_same_length, is_blank
from t2t_repro.text_tables import quantity

if TYPE_CHECKING:
    from t2t_repro.decoding.sentences import SentenceTranslator
    from t2t_repro.runs import RankedHypothesis

logger = logging.getLogger(__name__)


DESCRIPTION = (
    "Translate lines. The output has as many lines as the input, in the same order; "
    "blank lines give empty ones. A terminal or a pipe is answered line by line while "
    "it stays open."
)

Source = list[str] | LiveLines | TypedLines


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, ensembles=True)
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
    add_output_format_flag(parser)
    add_engine_flags(parser)
    parser.add_argument(
        "--target_prefix",
        metavar="FILE",
        help="text that each translation must begin with, one line per sentence; an "
        "empty line forces nothing, and a blank source stays without a translation",
    )
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
        check_output("--decode_to_file", output)
    # Report broken input before TensorFlow is imported and a model is loaded.
    sources = open_inputs(inputs)
    prefixes = read_prefixes(args, sources)
    live = [source for source in sources if not isinstance(source, list)]
    system = load_translating_system(
        args, hparams, parallel_batches=not any(one.is_terminal for one in live)
    )
    if sys.stderr.isatty() or any(one.must_wait for one in live):
        warm_up(system, hparams)
    hparams = system.with_problem_defaults(hparams)
    translator = system.translator(hparams)
    summary = Summary(hparams.beam_size if hparams.return_beams else 1)
    with _progress(sources) as progress:
        for source, output in zip(sources, outputs, strict=True):
            found = _translate_lines(translator, source, progress, prefixes)
            shown = output == STANDARD_STREAM and sys.stdout.isatty()
            lines = _lines(found, hparams, summary, as_json=as_json)
            write_lines(output, _erase_bar(lines, progress) if shown else lines)
    summary.log()
    return 0


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


def _translate_lines(
    translator: SentenceTranslator,
    source: Source,
    progress: Progress,
    prefixes: Sequence[str] | None,
) -> Iterator[tuple[str, list[Hypothesis]]]:
    """Yield every line with its hypotheses, in order."""
    chunks = [source] if isinstance(source, list) else source.chunks(CHUNK_SIZE)
    first = 0
    for chunk in chunks:
        found = translator.stream(
            chunk, progress.advance, prefixes=prefixes, first=first
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


def _erase_bar(lines: Iterator[str], progress: Progress) -> Iterator[str]:
    """Erase the bar before a line is written to the same terminal."""
    for line in lines:
        progress.clear()
        yield line


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


def read_prefixes(
    args: argparse.Namespace, sources: Sequence[list[str] | LiveLines | TypedLines]
) -> list[str] | None:
    """Read the file of the flag, or return None if it is not given.

    Args:
        args: Flags of the command.
        sources: Lines of every file to translate.

    Raises:
        UserError: If it cannot be read, or does not have one line per sentence.
        UsageError: If there are several files, or the number of lines is not known.
    """
    if args.target_prefix is None:
        return None
    sentences = sources[0]
    if len(sources) > 1 or not isinstance(sentences, list):
        raise UsageError(
            "received --target_prefix with several files or an open stream, expected "
            "one file to translate: give it as --decode_from_file."
        )
    if args.engine != TENSORFLOW:
        raise UsageError(
            f"received --target_prefix and --engine {args.engine}, expected "
            f"--engine {TENSORFLOW}, the only engine that follows prefixes."
        )
    prefixes = read_input(args.target_prefix)
    name = f"--target_prefix {args.target_prefix}"
    check_same_length(sentences, prefixes, "the text to translate", name)
    return prefixes


DECIMALS = 6


def text_line(hypotheses: Sequence[Hypothesis], hparams: DecodeHParams) -> str:
    """Format a sentence's hypotheses as tensor2tensor does, separated by tabs.

    With several columns, a tab inside a translation becomes a space.
    """
    texts = [as_line(hypothesis.text) for hypothesis in hypotheses]
    if not (hparams.return_beams or hparams.write_beam_scores):
        return texts[0]
    cells = []
    for text, hypothesis in zip(texts, hypotheses, strict=True):
        cells.append(text.replace("\t", " "))
        if hparams.write_beam_scores:
            cells.append(f"{hypothesis.score:.4f}")
    return "\t".join(cells)


def json_line(number: int, hypotheses: Sequence[RankedHypothesis]) -> str:
    """Format a sentence's hypotheses as a JSON object on one line.

    Args:
        number: Number of the line, counted from 1.
        hypotheses: Its translations, best first.
    """
    found = []
    for hypothesis in hypotheses:
        numbers = {"score": hypothesis.score, "log_prob": hypothesis.log_prob}
        rounded = {n: v and round(v, DECIMALS) for n, v in numbers.items()}
        found.append(dataclasses.asdict(hypothesis) | rounded)
    return json.dumps({"line": number, "hypotheses": found}, ensure_ascii=False)


class Summary:
    """Counts of the outputs that a user should know about.

    Args:
        wanted: Number of hypotheses per sentence that the user asked for.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._outputs = self._too_few = 0
        self._repaired: list[Hypothesis] = []

    def add(self, source: str, hypotheses: Sequence[Hypothesis]) -> None:
        """Count the hypotheses of a sentence."""
        self._outputs += 1
        self._too_few += len(hypotheses) < self._wanted and not is_blank(source)
        self._repaired += [best for best in hypotheses[:1] if best.repairs]

    def log(self) -> None:
        """Log the number of repaired outputs, and of lines with too few hypotheses."""
        if self._repaired:
            repairs = count_repairs(self._repaired).items()
            logger.info(
                "repaired %d of %d: %s",
                len(self._repaired),
                self._outputs,
                ", ".join(f"{count} x {fault}" for fault, count in repairs),
            )
        if self._too_few:
            logger.info(
                "%d of %s have fewer than %d hypotheses: the search ended no "
                "more of them within the length limit (extra_length)",
                self._too_few,
                quantity(self._outputs, "line"),
                self._wanted,
            )
