"""Flags that several commands share, and what is read from them.

A flag about data that is not given has the value None, so that it can be told from one
that is given. The problem's own setting applies then, or, for data that is already
prepared, the setting it was prepared with.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from t2t_repro import catalogue
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.request import OWN_MODEL, requested_settings, with_files
from t2t_repro.data.text_files import PairFiles, TreeFile
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
        help="folder for downloads (default: that of tensorflow-datasets)",
    )
    parser.add_argument(
        "--t2t_usr_dir", metavar="DIR", help="your own package of registrations"
    )


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
    _add_number(
        group,
        "vocab_size",
        int,
        "text_pairs: 8000; 32000 suits a million pairs and more",
    )
    group.add_argument(
        "--vocab_type",
        dest="model_type",
        choices=PrepareSettings.about("model_type").choices,
        help=f"{PrepareSettings.about('model_type').help} (text_pairs: bpe)",
    )
    group.add_argument(
        "--separate_vocabularies",
        dest="shared_vocabulary",
        action="store_const",
        const=False,
        help="one vocabulary per side (default: one for both)",
    )
    _add_number(group, "character_coverage", float, "default: 0.9999")
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
    _add_number(group, "max_pair_length", int, "default: 256")
    _add_number(group, "max_length_ratio", float, "default: 0")
    repeats = group.add_mutually_exclusive_group()
    repeats.add_argument(
        "--drop_duplicates",
        action="store_const",
        const=True,
        help="leave out training pairs seen before (default for text_pairs)",
    )
    repeats.add_argument(
        "--keep_duplicates",
        dest="drop_duplicates",
        action="store_const",
        const=False,
        help="keep them (default for other problems)",
    )
    _add_number(group, "num_shards", int, "default: 10")
    _add_number(group, "shuffle_seed", int, "default: 1")
    add_refused_flag(parser, "--seed", "it is now called --shuffle_seed")
    add_refused_flag(parser, "--max_length", "it is now called --max_pair_length")


def _add_number(
    group: argparse._ArgumentGroup, name: str, kind: type[int | float], default: str
) -> None:
    """Add the flag of a number among the `PrepareSettings`."""
    about = PrepareSettings.about(name)
    group.add_argument(
        f"--{name}",
        metavar="N" if kind is int else "X",
        type=at_least(about.at_least or 0, kind, about.at_most),
        help=f"{about.help} ({default})",
    )


class _Refused(argparse.Action):
    """Answer a flag that other versions have, or had, with an explanation."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        raise UsageError(f"received {self.option_strings[0]}: {self.const}")


def add_refused_flag(parser: argparse.ArgumentParser, flag: str, why: str) -> None:
    """Answer a flag with a usage error, whatever its value.

    Args:
        parser: Parser of the command.
        flag: The flag. `--help` does not show it.
        why: The rest of the message.
    """
    parser.add_argument(
        flag, action=_Refused, nargs="?", const=why, help=argparse.SUPPRESS
    )


def at_least(
    smallest: float, kind: Callable[[str], Any], largest: float | None = None
) -> Callable[[str], Any]:
    """Make the `type` of a flag whose value is a number in a range.

    Args:
        smallest: Smallest accepted number.
        kind: `int` or `float`.
        largest: Largest accepted number, if there is one.

    Returns:
        Function that parses the flag's text.
    """
    limits = f"at least {smallest:g}"
    if largest is not None:
        limits += f" and at most {largest}"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        # The comparison also refuses "nan".
        too_large = largest is not None and value is not None and value > largest
        if value is None or not value >= smallest or too_large:
            expected = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"received {text!r}, expected {expected} of {limits}"
            )
        return value

    return parse


def problem_and_settings(args: argparse.Namespace) -> tuple[Problem, dict[str, Any]]:
    """Read which problem is meant, and which settings of its preparation are given.

    Args:
        args: Flags of `add_data_flags`.

    Returns:
        The problem, on its files if there are any, and the values of `PrepareSettings`
        whose flags are given.

    Raises:
        UsageError: If the flags contradict each other or the problem.
    """
    if not args.problem:
        raise UsageError(
            "received no --problem, expected one of `t2t list problems`; for your own "
            "text, --problem text_pairs --train_source FILE --train_target FILE"
        )
    catalogue.load(args.t2t_usr_dir)
    problem = with_files(catalogue.problem(args.problem), _text_files(args))
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


def _text_files(args: argparse.Namespace) -> dict[str, PairFiles | TreeFile]:
    files: dict[str, PairFiles | TreeFile] = {}
    for split in SPLITS:
        pairs, trees = _pair_files(args, split), getattr(args, f"{split}_trees")
        if trees and pairs:
            raise UsageError(f"received --{split}_trees beside pairs, expected either")
        if pairs:
            files[split] = pairs
        elif trees:
            files[split] = TreeFile(trees)
    return files


def _pair_files(args: argparse.Namespace, split: str) -> PairFiles | None:
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
    return PairFiles(tsv or source, target) if tsv or source else None
