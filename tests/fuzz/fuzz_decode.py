"""Give files of random lines to `t2t decode`.

    python -m tests.fuzz.fuzz_decode --output_dir run --sentences known.en \
        --decode_hparams beam_size=2,extra_length=10 --inputs 20000 --seed 1

Every fifth line is a sentence of `--sentences`, whose translation is known from a file
without random lines. The script checks that each command ends with exit code 0, that an
output has as many lines as its input, that blank lines give empty ones, that the known
sentences have their translations (so nothing is lost, added or exchanged), and that
`--output_format json` numbers the lines. Some files are gzipped, some lack the last
line break, and one is piped. Each line that is not text (NUL, invalid UTF-8) is given
in a file of its own: exit code 1, a message with the file and line, and no output.

Each file has its own seed, so `--first_file` repeats a failure without the files before
it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import io
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from t2t_repro.cli.main import main as t2t
from tests.support.hard_text import random_hard_text, shows_nothing

LINES_PER_FILE = 400
FILES_PER_COMMAND = 10
KNOWN_EVERY = 5  # lines
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclasses.dataclass
class Ended:
    """A command that ended: its exit code, and what it wrote."""

    code: int
    stdout: bytes
    stderr: str


Run = Callable[[Sequence[str], bytes], Ended]


@dataclasses.dataclass
class Report:
    """Counts of lines: all, known, blank and refused; and what went wrong."""

    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    failures: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        return f"{counts}, {len(self.failures)} failures"


@dataclasses.dataclass
class HardFile:
    """A file of random lines between known sentences.

    Attributes:
        number: Number of the file.
        lines: Its lines, all valid text.
        expected: Translation by index of a line whose translation is known.
        refused: Lines that are not text, which belong into other files.
    """

    number: int
    lines: list[bytes]
    expected: dict[int, str]
    refused: list[bytes]

    def content(self) -> bytes:
        """Return the file; every third one lacks the last line break."""
        text = b"\n".join(self.lines)
        return text if self.number % 3 == 2 and self.lines[-1] else text + b"\n"

    def text(self, index: int) -> bytes:
        """Return the text of a line, without what belongs to the file."""
        line = self.lines[index].removesuffix(b"\r")
        return line.removeprefix(_BYTE_ORDER_MARK) if index == 0 else line

    def write(self, folder: Path) -> Path:
        """Write the file; every fifth one is gzipped."""
        if self.number % 5 < 4:
            path = folder / f"{self.number}.txt"
            path.write_bytes(self.content())
        else:
            path = folder / f"{self.number}.txt.gz"
            path.write_bytes(gzip.compress(self.content()))
        return path


def hard_file(
    seed: int, number: int, known: Mapping[str, str], length: int = LINES_PER_FILE
) -> HardFile:
    """Return a file: the same for the same seed and number."""
    source = random.Random(f"{seed} {number}")
    made = HardFile(number, [], {}, [])
    sentences = list(known)
    while len(made.lines) < length:
        if len(made.lines) % KNOWN_EVERY == 2:
            sentence = source.choice(sentences)
            made.expected[len(made.lines)] = known[sentence]
            made.lines.append(sentence.encode())
            continue
        for line in random_hard_text(source).split(b"\n"):
            (made.lines if _is_text(line) else made.refused).append(line)
    return made


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in line


class Fuzzer:
    """Run the command on files, and collect failures.

    Args:
        run: Runs `t2t`.
        flags: Flags of `t2t decode` that name the run and the search.
        folder: Empty folder for files.
    """

    def __init__(self, run: Run, flags: Sequence[str], folder: Path) -> None:
        self._run = run
        self._flags = ["decode", *flags]
        self._folder = folder
        self.report = Report()

    def translations(self, sentences: Sequence[str]) -> dict[str, str]:
        """Return the translation by sentence, without those that have the same one."""
        given = "".join(f"{sentence}\n" for sentence in sentences).encode()
        ended = self._run(self._flags, given)
        if ended.code:
            raise RuntimeError(ended.stderr)
        lines = ended.stdout.decode().split("\n")[:-1]
        unique = dict(zip(lines, sentences, strict=True))
        return {sentence: line for line, sentence in unique.items() if line}

    def check_files(self, files: Sequence[HardFile], *, as_json: bool) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            inputs, outputs = Path(folder) / "inputs", Path(folder) / "outputs"
            inputs.mkdir()
            outputs.mkdir()
            paths = [file.write(inputs) for file in files]
            chosen = ["--output_format", "json"] if as_json else []
            names = ["--decode_from_file", *map(str, paths)]
            written_to = ["--translations_dir", str(outputs)]
            ended = self._run([*self._flags, *names, *written_to, *chosen], b"")
            self._check_end(ended, f"files {[file.number for file in files]}")
            for file, path in zip(files, paths, strict=True):
                output = outputs / path.name.removesuffix(".gz")
                found = output.read_bytes() if output.exists() else b""
                self._check_output(file, found, as_json=as_json)

    def check_pipe(self, file: HardFile) -> None:
        ended = self._run(self._flags, file.content())
        self._check_end(ended, f"piped file {file.number}")
        self._check_output(file, ended.stdout, as_json=False)

    def check_refused(self, file: HardFile) -> None:
        """Give every line that is not text in a file of its own, in this process."""
        path, output = self._folder / "refused.txt", self._folder / "refused.out"
        flags = ["--decode_from_file", str(path), "--decode_to_file", str(output)]
        for index, line in enumerate(file.refused):
            lines = [b"We sleep .", b"", b"We run ."]
            row = index % (len(lines) + 1)
            lines.insert(row, line)
            path.write_bytes(b"\n".join(lines))
            ended = in_this_process([*self._flags, *flags], b"")
            self.report.counts["refused"] += 1
            if ended.code != 1 or not _names_line(ended.stderr, path, row + 1):
                self._fail(file, f"refused line {line[:80]!r}: {ended}")
            if list(self._folder.glob("refused.out*")):
                self._fail(file, f"refused line {line[:80]!r}: wrote a file")

    def _check_end(self, ended: Ended, given: str) -> None:
        if ended.code or "Traceback" in ended.stderr:
            self.report.failures.append(
                f"{given}: exit code {ended.code}, {ended.stderr[-500:]!r}"
            )

    def _check_output(self, file: HardFile, output: bytes, *, as_json: bool) -> None:
        self.report.counts["lines"] += len(file.lines)
        lines = output.decode().split("\n")
        if lines.pop() or len(lines) != len(file.lines):
            self._fail(file, f"{len(file.lines)} lines, {len(lines)} of output")
            return
        for index, line in enumerate(lines):
            given = file.text(index)
            text = _text_in_json(line, index + 1) if as_json else line
            is_blank = shows_nothing(given.decode())
            expected = "" if is_blank else file.expected.get(index, text)
            self.report.counts["known"] += index in file.expected
            self.report.counts["blank"] += is_blank
            if text != expected or "\r" in text:
                described = f"{given[:80]!r}: {text[:80]!r}, expected {expected[:80]!r}"
                self._fail(file, f"line {index + 1} {described}")

    def _fail(self, file: HardFile, message: str) -> None:
        self.report.failures.append(f"file {file.number}: {message}")


def _text_in_json(line: str, number: int) -> str:
    """Return the only hypothesis, or a description of what is wrong with the line."""
    found = json.loads(line)
    (hypothesis,) = found["hypotheses"]
    is_right = (found["line"], hypothesis["rank"]) == (number, 1)
    return hypothesis["text"] if is_right else f"\r{line[:200]}"


def _names_line(message: str, path: Path, row: int) -> bool:
    """Return whether a message names a line that is not text, or a wrong encoding."""
    place = re.escape(str(path))
    line = rf"{place}:{row}: received (\d[\d,]* NUL|byte 0x[0-9A-F]+)"
    whole = rf"received {place}, (which looks like UTF|a damaged gzip)"
    found = re.search(line, message) or re.search(whole, message)
    return found is not None and "Traceback" not in message


def in_this_process(arguments: Sequence[str], given: bytes) -> Ended:
    """Run `t2t` in this process, with bytes as its standard input."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    stderr = io.StringIO()
    usual = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = t2t(arguments)
    finally:
        sys.stdin = usual
    stdout.flush()
    return Ended(code, stdout.buffer.getvalue(), stderr.getvalue())


def fuzz(
    fuzzer: Fuzzer,
    sentences: Sequence[str],
    inputs: int,
    seed: int,
    first_file: int = 0,
    lines_per_file: int = LINES_PER_FILE,
) -> Iterator[Report]:
    """Check files until there were enough lines; see the module.

    Yields:
        The report after each command. It is the same object.
    """
    known = fuzzer.translations(sentences)
    number, as_json = first_file, False
    counts = fuzzer.report.counts
    while counts["lines"] + counts["refused"] < inputs:
        numbers = range(number, number + FILES_PER_COMMAND)
        files = [hard_file(seed, n, known, lines_per_file) for n in numbers]
        if number == first_file:
            fuzzer.check_pipe(files[0])
        fuzzer.check_files(files, as_json=as_json)
        for file in files:
            fuzzer.check_refused(file)
        number, as_json = number + FILES_PER_COMMAND, not as_json
        yield fuzzer.report


def main() -> int:
    parser = argparse.ArgumentParser(description="Give random lines to `t2t decode`.")
    parser.add_argument("--output_dir", required=True, help="folder of the run")
    parser.add_argument("--sentences", required=True, help="file of usual sentences")
    parser.add_argument("--decode_hparams", default="beam_size=2,extra_length=10")
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    parser.add_argument("--first_file", type=int, default=0)
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    sentences = Path(args.sentences).read_text(encoding="utf-8").splitlines()
    flags = ["--output_dir", args.output_dir, "--decode_hparams", args.decode_hparams]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(in_this_process, flags, Path(folder))
        for report in fuzz(fuzzer, sentences, args.inputs, args.seed, args.first_file):
            print(f"{report}, {time.perf_counter() - start:.0f} s", flush=True)
    for failure in fuzzer.report.failures:
        print(f"failure: {failure}")
    return 1 if fuzzer.report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
