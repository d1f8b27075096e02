"""`t2t decode` on random lines, by the program of tests/fuzz/fuzz_decode.py."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.fuzz.fuzz_decode import Ended, Fuzzer, fuzz, hard_file, in_this_process
from tests.support.command_lines import parsed
from tests.support.hard_text import shows_nothing
from tests.support.trained_system import sentence_pairs

SENTENCES = [source for source, _ in sentence_pairs()]


def test_random_lines_are_translated_in_order(trained, tmp_path):
    flags = ["--output_dir", str(trained.output_dir)]
    flags += ["--decode_hparams", "beam_size=2,extra_length=10"]
    fuzzer = Fuzzer(in_this_process, flags, tmp_path)
    commands = list(fuzz(fuzzer, SENTENCES, 200, seed=1, lines_per_file=10))
    report = commands[-1]
    assert report.failures == []
    assert len(commands) == 2  # text and JSON
    assert report.counts["lines"] >= 150
    assert min(report.counts.values()) > 5


def upper_case(line: bytes) -> str:
    text = line.removesuffix(b"\r").decode().upper().replace("\r", " ")
    return "" if shows_nothing(text) else text


def fake(change):
    """Return a stand-in for `t2t decode` with a fault, which writes upper case."""

    def run(arguments, given):
        flags = parsed("decode", arguments[1:])
        if flags.decode_from_file is None:
            lines = [upper_case(line) for line in given.split(b"\n")[:-1]]
            return Ended(0, "".join(f"{line}\n" for line in lines).encode(), "")
        for path in map(Path, flags.decode_from_file):
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            lines = content.removesuffix(b"\n").split(b"\n")
            texts = change([upper_case(line) for line in lines])
            if flags.output_format == "json":
                texts = [in_json(number, text) for number, text in enumerate(texts, 1)]
            output = Path(flags.translations_dir) / path.name.removesuffix(".gz")
            output.write_bytes("".join(f"{text}\n" for text in texts).encode())
        return Ended(0, b"", "")

    return run


def in_json(number, text):
    return json.dumps({"line": number, "hypotheses": [{"rank": 1, "text": text}]})


def found_with(run, folder, *, as_json=False):
    """Return the failures that the program finds in one file."""
    fuzzer = Fuzzer(run, ["--output_dir", "run"], folder)
    known = fuzzer.translations(SENTENCES)
    fuzzer.check_files([hard_file(5, 4, known, length=50)], as_json=as_json)
    return fuzzer.report.failures


@pytest.mark.parametrize("as_json", [False, True])
def test_the_program_finds_no_fault_where_there_is_none(tmp_path, as_json):
    assert found_with(fake(list), tmp_path, as_json=as_json) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda texts: texts[1:],
        lambda texts: ["", *texts],
        lambda texts: texts[::-1],
        lambda texts: [*texts[1:], texts[0]],
        lambda texts: [text or "x" for text in texts],
        lambda texts: [f"{text}\r" for text in texts],
    ],
)
def test_the_program_finds_a_lost_added_or_exchanged_line(tmp_path, change):
    assert found_with(fake(change), tmp_path)
