"""Flags that say which problem's data is meant and how it is prepared.

`t2t datagen` and `t2t train` share them. A flag that is not given has the value None:
then the problem's own setting holds, or, for data that is prepared already, whatever
it was prepared with.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro import catalogue
from t2t_repro.cli.data_flags import (
    add_place_flags,
    add_shard_flags,
    add_text_flags,
    add_vocabulary_flags,
)
from t2t_repro.cli.data_summary import summary
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.errors import UsageError
from t2t_repro.settings.prepare_settings import PrepareSettings

if TYPE_CHECKING:
    from t2t_repro.data.manifest import Manifest
    from t2t_repro.data.text_files import PairFiles, TreeFile

logger = logging.getLogger(__name__)

_SETTINGS = tuple(field.name for field in dataclasses.fields(PrepareSettings))
_OWN_MODEL = ("source_model", "target_model")
_LEARNT_MODEL = ("vocab_size", "model_type", "shared_vocabulary", "character_coverage")


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Registers the flags of a problem, its text, and its preparation."""
    add_place_flags(parser)
    add_text_flags(parser)
    add_vocabulary_flags(parser)
    add_shard_flags(parser)


def problem_from_arguments(
    args: argparse.Namespace,
) -> tuple[Problem, PrepareSettings]:
    """Gives the problem that the flags name, and how they want it prepared.

    Raises:
        UsageError: if the flags contradict each other or the problem.
    """
    problem = _problem(args)
    given = _given_settings(args, problem)
    return problem, dataclasses.replace(problem.prepare_settings, **given)


def prepared_data(args: argparse.Namespace) -> tuple[Problem, Manifest]:
    """Gives the problem and its data, which is prepared if it is not there.

    Data that is there is taken if the flags that are given agree with it, so nobody
    repeats the flags of `t2t datagen`.

    Raises:
        UserError: if they do not agree, or the data is damaged or cannot be prepared.
    """
    from t2t_repro.data import manifest as manifests

    problem, settings = problem_from_arguments(args)
    data_dir = required_data_dir(args)
    found = manifests.Manifest.load(data_dir, problem)
    if found is None:
        from t2t_repro.data.prepare import prepare

        found = prepare(problem, data_dir, args.tmp_dir, settings)
        logger.info("\n".join(summary(found, data_dir)))
    else:
        _check_given(args, problem, settings, found)
        manifests.check_files(found, data_dir, checksums=True)
    problem.splits = tuple(found.splits)
    return problem, found


def required_data_dir(args: argparse.Namespace) -> Path:
    """Gives the folder of prepared data.

    Raises:
        UsageError: if it is not given.
    """
    if not args.data_dir:
        raise UsageError("received no --data_dir, expected the folder for the data")
    return Path(args.data_dir)


def _problem(args: argparse.Namespace) -> Problem:
    if not args.problem:
        raise UsageError(
            "received no --problem, expected one of `t2t list problems`; for text of "
            "your own, --problem text_pairs --train_source FILE --train_target FILE"
        )
    catalogue.load(args.t2t_usr_dir)
    problem = catalogue.problem(args.problem)
    files = _text_files(args)
    _check_kind(problem, files)
    return problem.with_files(files) if files else problem


def _check_kind(problem: Problem, files: Mapping[str, PairFiles | TreeFile]) -> None:
    """Refuses files of another kind than the problem takes."""
    flags = {"pairs": "--train_source and --train_target", "trees": "--train_trees"}
    for file in files.values():
        if problem.file_kind and file.kind != problem.file_kind:
            raise UsageError(
                f"received {file.kind} for problem {problem.name}, expected "
                f"{flags[problem.file_kind]}"
            )


def _text_files(args: argparse.Namespace) -> dict[str, PairFiles | TreeFile]:
    from t2t_repro.data.text_files import TreeFile

    pairs = _pair_files(args)
    files: dict[str, PairFiles | TreeFile] = {**pairs}
    for split in SPLITS:
        trees = getattr(args, f"{split}_trees")
        if trees and split in pairs:
            raise UsageError(f"received --{split}_trees beside pairs, expected either")
        if trees:
            files[split] = TreeFile(trees)
    if files and "train" not in files:
        raise UsageError(
            f"received {' and '.join(files)} text without training text, expected "
            f"--train_source and --train_target, --train_tsv, or --train_trees"
        )
    return files


def _pair_files(args: argparse.Namespace) -> dict[str, PairFiles]:
    from t2t_repro.data.text_files import PairFiles

    files = {}
    for split in SPLITS:
        source, target, tsv = (
            getattr(args, f"{split}_{role}") for role in ("source", "target", "tsv")
        )
        if tsv and (source or target):
            raise UsageError(
                f"received --{split}_tsv beside --{split}_source or --{split}_target, "
                f"expected either one TSV or two files"
            )
        if bool(source) != bool(target):
            missing, given = ("target", "source") if source else ("source", "target")
            raise UsageError(
                f"received --{split}_{given} without --{split}_{missing}, expected both"
            )
        if tsv or source:
            files[split] = PairFiles(tsv or source, target)
    return files


def _given_settings(args: argparse.Namespace, problem: Problem) -> dict[str, Any]:
    """Gives the settings whose flags are given.

    Raises:
        UsageError: if they contradict each other or the problem.
    """
    given = {
        name: value
        for name in _SETTINGS
        if (value := getattr(args, name, None)) is not None
    }
    about_vocabulary = [name for name in (*_OWN_MODEL, *_LEARNT_MODEL) if name in given]
    if problem.vocabulary.kind == "symbols" and about_vocabulary:
        raise UsageError(
            f"received {_flag(about_vocabulary[0])} for problem {problem.name}, whose "
            f"vocabulary is its {len(problem.vocabulary.symbols)} symbols: leave it out"
        )
    if problem.vocabulary.kind == "subwords_to_symbols":
        _refuse(given, ("target_model", "shared_vocabulary"), problem)
    learnt = [name for name in _LEARNT_MODEL if name in given]
    own = [name for name in _OWN_MODEL if name in given]
    if own and learnt:
        raise UsageError(
            f"received {_flag(own[0])} and {_flag(learnt[0])}, expected either a model "
            f"of your own or one to be learnt"
        )
    return given


def _refuse(given: Mapping[str, Any], names: Sequence[str], problem: Problem) -> None:
    for name in names:
        if name in given:
            raise UsageError(
                f"received {_flag(name)} for problem {problem.name}, whose targets are "
                f"the symbols of trees: leave it out"
            )


def _flag(setting: str) -> str:
    spelt = {"model_type": "vocab_type", "shared_vocabulary": "separate_vocabularies"}
    return f"--{spelt.get(setting, setting)}"


def _check_given(
    args: argparse.Namespace,
    problem: Problem,
    settings: PrepareSettings,
    found: Manifest,
) -> None:
    """Compares the flags that are given, and no other, with the data that is there."""
    from t2t_repro.data import manifest as manifests

    text_is_known = not problem.file_kind or _text_files(args)
    expected = {
        role: facts
        for role, facts in found.sources.items()
        if role in manifests.MODEL_ROLES or not text_is_known
    }
    if text_is_known:
        sources = manifests.recorded_sources(problem.base, settings, args.tmp_dir)
    else:
        sources = manifests.model_identities(settings)
    given = _given_settings(args, problem)
    manifests.check_settings(
        found,
        required_data_dir(args),
        problem_version=problem.version,
        settings={
            name: value
            for name, value in manifests.recorded_settings(settings).items()
            if name in given
        },
        sources={**expected, **sources},
    )
