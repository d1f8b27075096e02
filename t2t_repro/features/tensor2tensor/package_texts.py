"""The files of text that a package written for tensor2tensor reads.

Nothing is downloaded: the files must be in `tmp_dir`, where tensor2tensor puts them.

Source: tensor2tensor 1.15.7, data_generators/text_problems.py, translate.py
(`compile_data`) and generator_utils.py.
"""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.package_refusals import located, refused
from t2t_repro.files import atomic_file

Sample = dict[str, str]


def txt_line_iterator(txt_path: str) -> Iterator[str]:
    """Yield the lines of a file without white space around them."""
    for line in _lines(txt_path):
        yield line.strip()


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzipped.

    Raises:
        UserError: If the file is missing, or is not UTF-8.
    """
    opened = gzip.open if path.endswith(".gz") else open
    try:
        # As in tensor2tensor, LF alone ends a line.
        with opened(path, "rt", encoding="utf-8", newline="\n") as file:
            yield from file
    except FileNotFoundError:
        raise missing(path) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8: {error}") from error


def missing(path: str, uri: str = "") -> UserError:
    """Return the error for a file that is not there.

    Args:
        path: The file.
        uri: Its origin, if it is known.
    """
    folder, name = os.path.split(path)
    origin = f" (tensor2tensor downloads {uri}, which is not done here)" if uri else ""
    text = f"no file {name} in {folder}{origin}: put it there, or name its folder"
    return UserError(located(f"{text} as tmp_dir"))


def text2text_txt_iterator(
    source_txt_path: str, target_txt_path: str
) -> Iterator[Sample]:
    """Yield the pairs of two files, up to the end of the shorter one."""
    sides = map(txt_line_iterator, (source_txt_path, target_txt_path))
    for inputs, targets in zip(*sides, strict=False):
        yield {"inputs": inputs, "targets": targets}


def text2text_distill_iterator(
    source_txt_path: str, target_txt_path: str, distill_txt_path: str
) -> Iterator[Sample]:
    """Yield the pairs of two files, with the output of a teacher."""
    pairs = text2text_txt_iterator(source_txt_path, target_txt_path)
    distilled = txt_line_iterator(distill_txt_path)
    for pair, dist_targets in zip(pairs, distilled, strict=False):
        yield {**pair, "dist_targets": dist_targets}


def text2text_txt_tab_iterator(txt_path: str) -> Iterator[Sample]:
    """Yield the pairs of a file that has a TAB between source and target."""
    for line in txt_line_iterator(txt_path):
        inputs, tab, targets = line.partition("\t")
        if tab:
            yield {"inputs": inputs.strip(), "targets": targets.strip()}


def maybe_download(directory: str, filename: str, uri: str) -> str:
    """Return the path of a file that was downloaded before.

    Raises:
        UserError: If it is not there.
    """
    path = os.path.join(directory, filename)
    if not os.path.exists(path):
        raise missing(path, uri)
    return path


def gunzip_file(gz_path: str, new_path: str) -> None:
    """Unpack a file, unless this was done before."""
    if not os.path.exists(new_path):
        with gzip.open(gz_path, "rb") as packed, open(new_path, "wb") as file:
            shutil.copyfileobj(packed, file)


def lines_for_vocab(
    tmp_dir: str, sources: Sequence[Any], file_byte_budget: float = 1e6
) -> Iterator[str]:
    """Yield lines from all over each file of some corpora, about a megabyte of each.

    Args:
        tmp_dir: Folder of the files.
        sources: For each corpus, its archive and its files.
        file_byte_budget: Number of characters of a file.
    """
    for uri, files in (source[:2] for source in sources):
        for name in files:
            path = os.path.join(tmp_dir, name)
            if not os.path.exists(path):
                raise missing(path, uri)
            skipped = int(os.path.getsize(path) / file_byte_budget / 2)
            left, waiting = file_byte_budget, skipped
            for line in txt_line_iterator(path):
                waiting -= 1
                if waiting >= 0:
                    continue
                if left <= 0:
                    break
                left -= len(line)
                waiting = skipped
                yield line


def compile_data(
    tmp_dir: str,
    datasets: Sequence[Any],
    filename: str,
    datatypes_to_clean: Sequence[str] | None = None,
) -> str:
    """Write the pairs of all corpora to two files, unless this was done before.

    Args:
        tmp_dir: Folder of the corpora and of the two files.
        datasets: For each corpus, its archive, and the names of its two files, or
            ("tsv", source column, target column, pattern of names).
        filename: Name of the two files without `.lang1` and `.lang2`.
        datatypes_to_clean: Kinds of corpora to clean.

    Returns:
        Path of the two files, without `.lang1` and `.lang2`.

    Raises:
        UserError: If a file is missing, or something else is asked for.
    """
    if datatypes_to_clean:
        raise refused("`datatypes_to_clean`", "clean the files, and leave it out")
    compiled = os.path.join(tmp_dir, filename)
    paths = [f"{compiled}.lang1", f"{compiled}.lang2"]
    if all(map(os.path.exists, paths)):
        return compiled
    corpora = [_pairs_of(tmp_dir, uri, files) for uri, files, *_ in datasets]
    with atomic_file(Path(paths[0])) as sources, atomic_file(Path(paths[1])) as targets:
        for source, target in itertools.chain.from_iterable(corpora):
            if source and target:
                sources.write(f"{source}\n".encode())
                targets.write(f"{target}\n".encode())
    return compiled


def _pairs_of(
    tmp_dir: str, uri: str, files: Sequence[Any]
) -> Iterable[tuple[str, str]]:
    """Return the pairs of a corpus, after a look for its files."""
    if files[0] == "tmx":
        raise refused("a corpus of the kind tmx", "convert it to two files of lines")
    if files[0] == "tsv":
        return _columns(tmp_dir, uri, *files[1:])
    paths = [os.path.join(tmp_dir, name) for name in files]
    for path in paths:
        if not os.path.exists(path):
            raise missing(path, uri)
    sides = map(txt_line_iterator, paths)
    if all(path.endswith("sgm") for path in paths):
        sides = (map(_segment, side) for side in sides)
    return zip(*sides, strict=False)


def _segment(line: str) -> str:
    """Return the text of a line `<seg id="1">...</seg>`, or "" for another line."""
    is_segment = line.startswith("<seg") and line.endswith("</seg>")
    return line.partition(">")[2].removesuffix("</seg>") if is_segment else ""


def _columns(
    tmp_dir: str, uri: str, source: int, target: int, pattern: str
) -> Iterable[tuple[str, str]]:
    paths = sorted(Path(tmp_dir).glob(pattern))
    if not paths:
        raise missing(os.path.join(tmp_dir, pattern), uri)
    lines = itertools.chain.from_iterable(_lines(str(path)) for path in paths)
    rows = (line.split("\t") for line in lines if "\t" in line)
    return ((row[source].strip(), row[target].strip()) for row in rows)


TEXT_MEMBERS: dict[str, Any] = {
    "txt_line_iterator": txt_line_iterator,
    "text2text_txt_iterator": text2text_txt_iterator,
    "text2text_txt_tab_iterator": text2text_txt_tab_iterator,
    "text2text_distill_iterator": text2text_distill_iterator,
}
FILE_MEMBERS: dict[str, Any] = {
    "maybe_download": maybe_download,
    "maybe_download_from_drive": maybe_download,
    "gunzip_file": gunzip_file,
    "generate_lines_for_vocab": lines_for_vocab,
}
