"""The files of two tokenizers in the folder of a run or of prepared data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from t2t_repro.files import path_inside
from t2t_repro.text import Tokenizer, load_tokenizer

SIDES = ("inputs", "targets")


def tokenizer_file_names(
    source: Tokenizer, target: Tokenizer, *, shared: str = "shared", prefix: str = ""
) -> dict[str, str]:
    """Name the files of two tokenizers.

    Args:
        source: Tokenizer of the inputs.
        target: Tokenizer of the targets; the same object if the vocabulary is shared.
        shared: Name of the one file of a shared vocabulary, without its suffix.
        prefix: Prefix of the names of two files.

    Returns:
        File names of "inputs" and "targets", which are equal if the vocabulary is
        shared.
    """
    if source is target:
        return dict.fromkeys(SIDES, f"{shared}{source.filename_suffix}")
    return {
        side: f"{prefix}{side}{tokenizer.filename_suffix}"
        for side, tokenizer in zip(SIDES, (source, target), strict=True)
    }


def load_tokenizers(
    folder: str | Path, names: Mapping[str, str]
) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of inputs and targets.

    Args:
        folder: Folder of the files.
        names: File names of "inputs" and "targets".

    Returns:
        The two tokenizers; one object twice if the names are equal.

    Raises:
        UserError: If a file is missing or damaged, or a name leads to another folder.
    """
    inputs, targets = (names[side] for side in SIDES)
    source = load_tokenizer(path_inside(folder, inputs))
    if inputs == targets:
        return source, source
    return source, load_tokenizer(path_inside(folder, targets))
