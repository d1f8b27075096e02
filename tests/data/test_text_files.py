from __future__ import annotations

import gzip
import os
import re
import subprocess
from pathlib import Path

import pytest

from t2t_repro.data.text_files import (
    identity,
    read_lines,
    stream_lines,
)
from t2t_repro.errors import UserError


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


LATIN_1 = b"caf\xe9\n"


def lines_of(tmp_path: Path, content: bytes) -> list[str]:
    return list(read_lines(written(tmp_path / "text", content)))


def test_lines_end_at_line_feeds_only(tmp_path):
    text = "one\x85two\u2028three\u2029four\x0bfive\x0csix\x1cseven\rnine"
    assert lines_of(tmp_path, f"{text}\nlast\n".encode()) == [text, "last"]


@pytest.mark.parametrize("content", [b"one\rtwo\rthree", b"one\rtwo\r"])
def test_a_file_with_the_line_ends_of_old_macs_is_refused(tmp_path, content):
    with pytest.raises(UserError, match=r"carriage returns.*`tr '\\r' '\\n' < "):
        lines_of(tmp_path, content)
    with pytest.raises(UserError, match=r"gunzip -c .* \| tr '\\r' '\\n' > "):
        lines_of(tmp_path, gzip.compress(content))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        # A single line may have a carriage return; one belongs to the line end.
        (b"one\rtwo", ["one\rtwo"]),
        (b"one\rtwo\r\n", ["one\rtwo"]),
        (b"a\r\nb\r\r\n", ["a", "b\r"]),
        # The last line needs no line feed, and empty lines are kept.
        (b"a\nb", ["a", "b"]),
        (b"\na\n\n", ["", "a", ""]),
        # A byte-order mark is left out at the start only.
        ("\ufeffa\n\ufeffb\n".encode(), ["a", "\ufeffb"]),
        # Gzip is recognized by its content, whatever the file is called.
        (gzip.compress("ä\nb\n".encode(), mtime=0), ["ä", "b"]),
    ],
)
def test_a_text_has_its_lines(tmp_path, content, lines):
    assert lines_of(tmp_path, content) == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(b"a\n" * 9_000, mtime=0)[:-12], "damaged gzip"),
        (gzip.compress(b"a\n" * 9_000, mtime=0)[:10] + b"\xff" * 40, "damaged gzip"),
        (b"\x1f\x8bnothing", "damaged gzip"),
        (b"good\nbad \xe9 byte\n", r"text:2: received byte 0xE9 at byte 5 of the line"),
        (b"good\nn\0l\0\n", "text:2: received 2 NUL"),
        ("wörter\n".encode("latin-1"), "iconv -f WINDOWS-1252 -t UTF-8"),
        ("überall\n".encode("utf-16"), "iconv -f UTF-16LE -t UTF-8"),
        ("a line\n".encode("utf-16-le") * 9, "looks like UTF-16LE"),
        ("a line\n".encode("utf-16-be") * 9, "looks like UTF-16BE"),
        ("a line\n".encode("utf-32"), "looks like UTF-32LE"),
        ("a line\n".encode("utf-32-le") * 9, "looks like UTF-32LE"),
        ("a line\n".encode("utf-32-be") * 9, "looks like UTF-32BE"),
    ],
)
def test_text_that_is_not_utf8_is_refused(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        lines_of(tmp_path, content)


@pytest.mark.parametrize(
    ("name", "content", "converted"),
    [
        ("it's my text; $HOME.txt", LATIN_1, "it's my text; $HOME.txt.utf8"),
        ("my text", "café\n".encode("utf-16"), "my text.utf8"),
        ("my text.gz", gzip.compress(LATIN_1, mtime=0), "my text.utf8"),
    ],
)
def test_the_suggested_conversion_can_be_pasted_into_a_shell(
    tmp_path, monkeypatch, name, content, converted
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        list(read_lines(written(tmp_path / name, content)))
    command = str(caught.value).partition("`")[2].rpartition("`")[0]
    subprocess.run(["sh", "-c", command], check=True)
    assert list(read_lines(tmp_path / converted)) == ["café"]


def test_a_gzipped_stream_is_unzipped_before_it_is_converted(tmp_path):
    path = written(tmp_path / "copy", gzip.compress(LATIN_1, mtime=0))
    with pytest.raises(UserError, match=r"`\.\.\. \| gunzip \| iconv "):
        list(read_lines(path, "standard input"))


@pytest.mark.parametrize("content", [LATIN_1, "café\n".encode("utf-16")])
def test_a_stream_is_named_and_converted_in_a_pipe(tmp_path, content):
    path = written(tmp_path / "copy", content)
    with pytest.raises(UserError) as caught:
        list(read_lines(path, "standard input"))
    message = str(caught.value)
    assert "standard input" in message
    assert str(tmp_path) not in message
    assert re.search(r"`\.\.\. \| iconv -f \S+ -t UTF-8 \| t2t \.\.\.`", message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "No such file"),
        (".", "directory"),
        (os.devnull, "expected a regular file"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path, name, message):
    with pytest.raises(UserError, match=message):
        list(read_lines(tmp_path / name))


def test_an_identity_depends_on_the_content_and_not_on_the_location(tmp_path):
    first = identity(written(tmp_path / "a", b"text"))
    assert first == identity(written(tmp_path / "b", b"text"))
    assert first != identity(written(tmp_path / "a", b"tent"))


STREAMED = "\ufefföne\r\ntwo\u2028three\n\n  four  \nlast 🙂".encode()


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_stream_has_the_lines_of_the_same_file(tmp_path, size, pack):
    content = pack(STREAMED)
    blocks = [content[start : start + size] for start in range(0, len(content), size)]
    expected = ["öne", "two\u2028three", "", "  four  ", "last 🙂"]
    assert list(stream_lines(blocks, "the pipe")) == expected
    assert lines_of(tmp_path, content) == expected


@pytest.mark.parametrize(("block", "line"), [(b"one\ntw", "one"), (b"\n", "")])
def test_a_line_of_a_stream_does_not_wait_for_the_next_block(block, line):
    def blocks():
        yield block
        raise AssertionError("The first line was already complete.")

    assert next(stream_lines(blocks(), "the pipe")) == line


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"fine\nna\xefve\n", "the pipe:2: received byte 0xEF at byte 3"),
        (b"fine\nzero \0\n", "the pipe:2: received 1 NUL byte"),
        ("wide and long".encode("utf-16-le"), "the pipe, which looks like UTF-16LE"),
        (b"\x1f\x8b\x08damaged", "the pipe, a damaged gzip file"),
        (gzip.compress(STREAMED, mtime=0)[:-9], "the pipe, a damaged gzip file"),
    ],
)
def test_an_error_in_a_stream_names_stream_and_line(content, answer):
    with pytest.raises(UserError, match=answer):
        list(stream_lines([content], "the pipe"))
