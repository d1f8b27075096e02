"""Read the data flags: a problem, its files, and how to prepare them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.cli.framework import load_catalogue
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.request import (
    OWN_MODEL,
    PairCorpora,
    PairFiles,
    SplitText,
    TfdsName,
    TreeFile,
    requested_settings,
    with_files,
)
from t2t_repro.errors import UsageError
from t2t_repro.settings.prepare_settings import PrepareSettings


def problem_and_settings(
    args: argparse.Namespace,
    default_problem: str | None = None,
    default_usr_dir: str | None = None,
) -> tuple[Problem, dict[str, Any]]:
    """Return the problem that the flags name, and the settings of its preparation.

    Args:
        args: Flags of `add_data_flags`.
        default_problem: Name of the problem if the flags name none.
        default_usr_dir: Folder of the user's package if the flags name none.

    Returns:
        The problem, with its files if there are any, and the given values of
        `PrepareSettings` by name.

    Raises:
        UsageError: If the flags contradict each other or the problem.
    """
    name = args.problem or default_problem
    if not name:
        raise UsageError(
            "received no --problem, expected one of `t2t list problems`; for your own "
            "text, --problem text_pairs --train_source FILE --train_target FILE"
        )
    load_catalogue(args.t2t_usr_dir or default_usr_dir)
    problem = with_files(catalogue.problem(name), _text_files(args))
    names = (*PrepareSettings.names(), *OWN_MODEL)
    flags = vars(args)
    given = {name: flags[name] for name in names if flags[name] is not None}
    requested_settings(problem, given)
    return problem, given


def required_data_dir(args: argparse.Namespace) -> Path:
    """Return the folder of prepared data.

    Raises:
        UsageError: If it is not given.
    """
    if not args.data_dir:
        raise UsageError("received no --data_dir, expected the folder for the data")
    return Path(args.data_dir)


def _text_files(args: argparse.Namespace) -> dict[str, SplitText]:
    files: dict[str, SplitText] = {}
    for split in SPLITS:
        pairs, trees = _pair_files(args, split), getattr(args, f"{split}_trees")
        if trees and pairs:
            raise UsageError(f"received --{split}_trees beside pairs, expected either")
        if pairs:
            files[split] = pairs
        elif trees:
            files[split] = TreeFile(trees)
    if args.train_weights and "train" not in files:
        raise UsageError("received --train_weights without training text")
    if not args.tfds:
        return files
    if files:
        raise UsageError("received --tfds beside text files, expected either")
    return {"train": TfdsName(args.tfds)}


def _pair_files(args: argparse.Namespace, split: str) -> PairFiles | PairCorpora | None:
    source, target, tsv = (
        getattr(args, f"{split}_{role}") for role in ("source", "target", "tsv")
    )
    if tsv and (source or target):
        raise UsageError(
            f"received --{split}_tsv beside --{split}_source or --{split}_target, "
            "expected either one TSV or two files"
        )
    if bool(source) != bool(target):
        missing, given = ("target", "source") if source else ("source", "target")
        raise UsageError(
            f"received --{split}_{given} without --{split}_{missing}, expected both"
        )
    if not (tsv or source):
        return None
    if split != "train":
        return PairFiles(tsv or source, target)
    return _training_files(tsv or source, target, args.train_weights)


def _training_files(
    source: Path, target: Path | None, weights: str | None
) -> PairFiles | PairCorpora:
    """Return the files of one corpus, or of several separated by commas."""
    sources = _split(source)
    targets = [None] * len(sources) if target is None else _split(target)
    if len(sources) != len(targets):
        raise UsageError(
            f"received {len(sources)} file(s) in --train_source and {len(targets)} in "
            "--train_target, expected equal numbers"
        )
    corpora = tuple(map(PairFiles, sources, targets))
    if len(corpora) == 1 and weights is None:
        return corpora[0]
    return PairCorpora(corpora, _copies(weights, len(corpora)))


def _split(path: Path) -> list[Path]:
    """Split a list of files at its commas, unless a file has this name."""
    # `Path.exists` raises an error if the list is too long for a name.
    if os.path.exists(path):
        return [path]
    return [Path(name) for name in str(path).split(",")]


def _copies(weights: str | None, corpora: int) -> tuple[int, ...]:
    if weights is None:
        return (1,) * corpora
    texts = weights.split(",")
    if len(texts) != corpora or not all(
        text.isdecimal() and int(text) for text in texts
    ):
        raise UsageError(
            f"received --train_weights {weights}, expected {corpora} whole number(s) "
            "of at least 1, with commas between them: one per training corpus"
        )
    return tuple(map(int, texts))
