"""`t2t decode`: translate a file or standard input, line by line."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.decode_arguments import add_decode_hparams, decode_hparams
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.progress import progress
from t2t_repro.cli.system_arguments import add_system_arguments
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write

if TYPE_CHECKING:
    from t2t_repro.decoding.translate import Hypothesis
    from t2t_repro.settings.decode_hparams import DecodeHParams

logger = logging.getLogger(__name__)

STANDARD_STREAM = "-"


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser(
        "decode",
        description=(
            "Translate lines. Output has as many lines as input, in its order; empty "
            "lines stay empty."
        ),
    )
    add_system_arguments(parser)
    parser.add_argument(
        "--decode_from_file",
        default=STANDARD_STREAM,
        help="UTF-8 text, plain or .gz, a sentence a line; - = standard input "
        "(default)",
    )
    parser.add_argument(
        "--decode_to_file",
        default=STANDARD_STREAM,
        help="where translations go; - = standard output (default)",
    )
    add_decode_hparams(parser)


def run(args: argparse.Namespace) -> int:
    """Translate and write."""
    hparams = decode_hparams(args)
    check_writable("--decode_to_file", args.decode_to_file)
    # Broken input is answered before TensorFlow is imported and a model is loaded.
    lines = read_input(args.decode_from_file)
    import_tensorflow()
    from t2t_repro.cli.system import load_system

    system = load_system(args)
    translator = system.translator(system.with_problem_defaults(hparams))
    with progress(len(lines), "sentence") as advance:
        translations = translator.translate(lines, advance)
    report_repairs([best[0] for best in translations])
    output = "".join(f"{format_line(best, hparams)}\n" for best in translations)
    write_output(args.decode_to_file, output)
    return 0


def report_repairs(hypotheses: Sequence[Hypothesis]) -> None:
    """Say of how many outputs something was repaired, and what."""
    summary = repair_summary(hypotheses)
    if summary:
        logger.info(
            "repaired %d of %d: %s",
            sum(bool(hypothesis.repairs) for hypothesis in hypotheses),
            len(hypotheses),
            ", ".join(f"{count} x {fault}" for fault, count in summary.items()),
        )


def repair_summary(hypotheses: Sequence[Hypothesis]) -> dict[str, int]:
    """Count the outputs with each kind of repair, the most frequent first."""
    faults = Counter(fault for best in hypotheses for fault in best.repairs)
    return dict(faults.most_common())


def read_input(name: str) -> list[str]:
    """Read the lines of a file or, for "-", of standard input.

    Raises:
        UserError: If it cannot be read, or is not UTF-8 text.
    """
    from t2t_repro.data.text_files import read_lines

    piped_from = "standard input" if name == STANDARD_STREAM else None
    with _as_file(name) as path:
        if path.is_file() and path.stat().st_size == 0:
            return []
        return list(read_lines(path, piped_from))


@contextlib.contextmanager
def _as_file(name: str) -> Iterator[Path]:
    if name != STANDARD_STREAM:
        yield Path(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard_input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def check_writable(flag: str, name: str) -> None:
    """Refuse an output file that cannot be written, before the work is done.

    Raises:
        UserError: If its folder is not there or not writable.
    """
    path = Path(name)
    written_to = path if _is_device(path) else path.parent
    if name != STANDARD_STREAM and (
        path.is_dir() or not os.access(written_to, os.W_OK)
    ):
        raise UserError(
            f"received {flag} {name}, expected a file in an existing folder "
            "that can be written to."
        )


def _is_device(path: Path) -> bool:
    """Say whether a path is a device or a pipe, which must not be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def format_line(hypotheses: Sequence[Hypothesis], hparams: DecodeHParams) -> str:
    """Write a sentence's hypotheses as tensor2tensor does: tabs between them.

    Among columns a tab inside a translation becomes a space, to tell them apart.
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


def as_line(text: str) -> str:
    """Keep a translation on one line: a model may generate any character.

    Of the characters that Unicode calls line breaks only these two end a line of a
    file, the second where it is opened with Python's default.
    """
    return text.replace("\n", " ").replace("\r", " ")


def write_output(name: str, text: str) -> None:
    """Write to a file, whole or not at all, or for "-" to standard output."""
    content, path = text.encode("utf-8"), Path(name)
    if name == STANDARD_STREAM:
        sys.stdout.buffer.write(content)
    elif _is_device(path):
        path.write_bytes(content)
    else:
        # Where the name is a link, what it points to is replaced.
        atomic_write(path.resolve(), content)
