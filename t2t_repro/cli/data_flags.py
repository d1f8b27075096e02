"""Flags of a problem, its text and its preparation, and their interpretation.

A flag that is not given is None. Its setting then comes from the problem, the prepared
data, or the run that is resumed.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.cli.flags import (
    FlagContainer,
    add_refused_flag,
    add_setting_flag,
    add_usr_dir_flag,
    number_in_range,
)
from t2t_repro.cli.loading import load_catalogue
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


def add_data_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a problem, its text, and its preparation."""
    _add_place_flags(parser)
    _add_text_flags(parser)
    _add_vocabulary_flags(parser)
    _add_shard_flags(parser)


def _add_place_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--problem", metavar="NAME", help="a name from `t2t list problems`, or NAME_rev"
    )
    parser.add_argument("--data_dir", metavar="DIR", help="folder of prepared data")
    parser.add_argument(
        "--tmp_dir",
        metavar="DIR",
        help="folder for downloads (default: the folder of tensorflow-datasets)",
    )
    add_usr_dir_flag(parser)


def _add_text_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "text of --problem text_pairs",
        "UTF-8, plain or gzipped, one sentence per line. Without dev files, some of "
        "the training text is held out.",
    )
    for split in SPLITS:
        for side in ("source", "target"):
            group.add_argument(
                f"--{split}_{side}",
                metavar="FILE",
                type=Path,
                help=f"{side} sentences of the {split} text",
            )
        group.add_argument(
            f"--{split}_tsv",
            metavar="FILE",
            type=Path,
            help=f"{split} text in one file: source, TAB, target",
        )
    group.add_argument(
        "--train_weights",
        metavar="N,N,...",
        help="copies of each training pair of several corpora, whose files are given "
        "with commas between them: --train_source a.en,b.en --train_target a.de,b.de "
        "--train_weights 1,3 (default: 1 each)",
    )
    group = parser.add_argument_group("text of --problem translate_tfds")
    group.add_argument(
        "--tfds",
        metavar="NAME",
        help="translation data set of tensorflow-datasets, such as "
        "ted_hrlr_translate/pt_to_en",
    )
    group = parser.add_argument_group(
        "text of --problem parsing_ptb",
        "Trees in the Penn Treebank's brackets, UTF-8, plain or gzipped, one per line "
        "or on several lines each.",
    )
    for split in SPLITS:
        group.add_argument(
            f"--{split}_trees", metavar="FILE", type=Path, help=f"{split} trees"
        )


def _add_vocabulary_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "vocabulary", "Learned from the training text; defaults are the problem's own."
    )
    remark = "text_pairs: 8000; 32000 suits a million pairs and more"
    _add_number(group, "vocab_size", remark)
    group.add_argument(
        "--vocab_type",
        dest="model_type",
        choices=PrepareSettings.about("model_type").choices,
        help=f"{PrepareSettings.about('model_type').help}: the setting model_type "
        "(text_pairs: bpe)",
    )
    group.add_argument(
        "--separate_vocabularies",
        dest="shared_vocabulary",
        action="store_const",
        const=False,
        help="one vocabulary per side: shared_vocabulary=False (default: one for both)",
    )
    _add_number(group, "character_coverage")
    group.add_argument(
        "--source_model",
        metavar="FILE",
        help="your own SentencePiece model of the inputs, or of both sides",
    )
    group.add_argument(
        "--target_model",
        metavar="FILE",
        help="your own SentencePiece model of the targets",
    )


def _add_shard_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("preparation")
    usual = PrepareSettings.about("max_pair_length").default
    _add_number(group, "max_pair_length", f"default: {usual}, or the problem's")
    _add_number(group, "max_length_ratio")
    repeats = group.add_mutually_exclusive_group()
    repeats.add_argument(
        "--drop_duplicates",
        action="store_const",
        const=True,
        help="leave out repeated training pairs (default for text_pairs and "
        "translate_tfds)",
    )
    repeats.add_argument(
        "--keep_duplicates",
        dest="drop_duplicates",
        action="store_const",
        const=False,
        help="keep them (default for other problems)",
    )
    _add_number(group, "subword_copies")
    _add_number(group, "subword_sampling")
    _add_number(group, "num_shards")
    _add_number(group, "shuffle_seed")
    group.add_argument(
        "--num_workers",
        metavar="N",
        type=number_in_range(1, int),
        help="processes that encode a long text; the data does not depend on it "
        "(default: all cores)",
    )
    add_refused_flag(
        parser,
        "--seed",
        "--shuffle_seed orders the prepared data, and --random_seed of t2t train seeds "
        "the training run",
    )
    add_refused_flag(
        parser,
        "--max_length",
        "--max_pair_length limits the pairs that are prepared, and --hparams "
        "max_length=N of t2t train limits the pairs that are trained on",
    )


def _add_number(group: FlagContainer, name: str, remark: str = "") -> None:
    """Add the flag of a number, whose help ends with the remark or the default."""
    about = PrepareSettings.about(name)
    remark = remark or f"default: {about.default:g}"
    metavar = "N" if about.kind is int else "X"
    add_setting_flag(group, PrepareSettings, name, f" ({remark})", metavar)


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
    requested_settings(problem, given)  # refuses flags that contradict each other
    return problem, given


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
