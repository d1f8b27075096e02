from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import threading

import pytest

from t2t_repro.cli import decode, streams
from t2t_repro.cli.main import main
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.errors import UserError
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.fuzz.fuzz_decode import Fuzzer, fuzz, in_this_process
from tests.support.trained_system import printed_by, sentence_pairs

LINES = [
    "one times: the house is red .",
    "",
    "four times: the ship is white .",
    "  spaces  everywhere  ",
    "never heard: 漢字 🙂 \u200b",
    "a\u2028line\u0085separator\x0cinside",
    "three times: the horse is blue . " * 12,
    "tab\there",
    "\u00a0\u200b\ufeff",
    "two times: the book is green .",
]


def decode_arguments(trained, source, target="-", **hparams):
    hparams = {"beam_size": 2} | hparams
    return [
        "decode",
        *("--output_dir", str(trained.output_dir)),
        *("--decode_from_file", str(source), "--decode_to_file", str(target)),
        *("--decode_hparams", ",".join(f"{n}={v}" for n, v in hparams.items())),
    ]


def lines_of(text):
    assert text == "" or text.endswith("\n")
    return text.split("\n")[:-1]


def translated(trained, path, **hparams):
    return lines_of(printed_by(decode_arguments(trained, path, **hparams)))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("decode") / "source.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected(trained, source):
    """Return the translations of `LINES`."""
    return translated(trained, source)


def test_every_line_has_a_translation_and_blank_lines_an_empty_one(expected):
    assert len(expected) == len(LINES)
    assert [n for n, line in enumerate(expected) if not line] == [1, 8]
    assert len(set(expected)) > len(LINES) // 2


def test_a_file_gets_the_lines_of_standard_output(trained, source, expected, tmp_path):
    target = tmp_path / "target.txt"
    printed = printed_by(decode_arguments(trained, source, target))
    assert printed == ""
    assert lines_of(target.read_text(encoding="utf-8")) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["target.txt"]


def test_other_forms_of_the_same_text_have_the_same_translations(
    trained, source, expected, tmp_path, monkeypatch
):
    zipped, windows = tmp_path / "source.gz", tmp_path / "crlf"
    zipped.write_bytes(gzip.compress(source.read_bytes()))
    windows.write_bytes("\r\n".join(LINES).encode())  # no break after the last line
    stream = io.TextIOWrapper(io.BytesIO(source.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    for path in (zipped, windows, "-"):
        assert translated(trained, path) == expected


def test_an_empty_file_gives_an_empty_file(trained, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    target = tmp_path / "target"
    assert main(decode_arguments(trained, tmp_path / "empty", target)) == 0
    assert target.read_bytes() == b""


def test_an_over_long_line_is_reported_and_not_lost(trained, expected, source, capsys):
    assert main(decode_arguments(trained, source)) == 0
    assert "line 7 has " in capsys.readouterr().err
    assert len(expected[6]) > len(expected[0])


def test_tabs_inside_one_of_several_hypotheses_become_spaces():
    hypotheses = [Hypothesis("a\tb\nc\u2028d", -1.0), Hypothesis("e", -2.00004)]
    hparams = DecodeHParams(return_beams=True, write_beam_scores=True)
    assert decode.text_line(hypotheses, hparams) == (
        "a b c\u2028d\t-1.0000\te\t-2.0000"
    )


def test_a_line_of_one_translation_is_the_translation():
    texts = ["a\tb\u2028c\x85\x0cd", "a\nb\rc\r\nd"]
    lines = [decode.text_line([Hypothesis(t, -1.0)], DecodeHParams()) for t in texts]
    assert lines == [texts[0], "a b c  d"]


def failure(capsys, arguments):
    assert main(arguments) == 1
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return errors


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"fine\nna\xefve\n", ":2: received byte 0xEF at byte 3"),
        (b"fine\nzero \0\n", ":2: received 1 NUL byte"),
        ("\ufeffwide".encode("utf-16-le"), "looks like UTF-16LE"),
        (b"\x1f\x8b\x08damaged", "damaged gzip file"),
    ],
)
def test_a_broken_file_leaves_no_output(trained, tmp_path, capsys, content, answer):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    assert answer in failure(capsys, decode_arguments(trained, source, target))
    assert not target.exists()


def test_an_error_in_standard_input_names_standard_input(trained, monkeypatch, capsys):
    stream = io.TextIOWrapper(io.BytesIO(b"\xff\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    errors = failure(capsys, decode_arguments(trained, "-"))
    assert "t2t decode: standard input:1: received byte 0xFF" in errors


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    streams.check_output("--decode_to_file", str(pipe))
    streams.write_lines(str(pipe), ["grün"])
    assert os.read(reader, 100).decode() == "grün\n"
    assert pipe.is_fifo()
    os.close(reader)


def test_a_pipe_is_read_like_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("grün\nrot\n",))
    writer.start()
    assert streams.read_input(str(pipe)) == ["grün", "rot"]
    writer.join()


def test_a_stream_that_cannot_be_copied_names_the_folder(tmp_path, monkeypatch):
    def fill_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(streams.shutil, "copyfileobj", fill_disk)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    with pytest.raises(UserError, match=r"cannot copy standard input to .*: No space"):
        streams.read_input("-")


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    streams.write_lines(str(tmp_path / "link"), ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line(trained, source, capsys):
    errors = failure(capsys, decode_arguments(trained, source, "/dev/full"))
    assert "t2t decode: cannot write /dev/full: No space left on device." in errors


def test_a_full_disk_leaves_no_file(tmp_path):
    def lines():
        yield "one"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match=r"cannot write .*target: No space left"):
        streams.write_lines(str(tmp_path / "target"), lines())
    assert list(tmp_path.iterdir()) == []


def test_a_link_beside_the_output_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "target.incomplete").symlink_to(precious)
    streams.write_lines(str(tmp_path / "target"), ["one"])
    assert precious.read_text() == "precious"
    assert (tmp_path / "target").read_text() == "one\n"


def test_a_file_is_compressed_if_its_name_says_so(tmp_path):
    lines = ["Straße", "", "two"]
    for name in ("target.gz", "again.gz"):
        streams.write_lines(str(tmp_path / name), lines)
    content = (tmp_path / "target.gz").read_bytes()
    assert gzip.decompress(content) == "Straße\n\ntwo\n".encode()
    assert streams.read_input(str(tmp_path / "target.gz")) == lines
    assert (tmp_path / "again.gz").read_bytes() == content


def test_lines_are_written_as_they_come(tmp_path):
    seen = []

    def lines():
        for number in range(3):
            yield str(number)
            (incomplete,) = tmp_path.iterdir()
            seen.append(incomplete.read_text())

    streams.write_lines(str(tmp_path / "target"), lines())
    assert seen == ["0\n", "0\n1\n", "0\n1\n2\n"]


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
