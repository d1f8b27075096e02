"""The flags of `t2t datagen` that `t2t train` takes as well.

A flag that is not given has the value None, so that it can be told from one that is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2t_repro.data.problem import SPLITS


def add_place_flags(parser: argparse.ArgumentParser) -> None:
    """Registers which problem is meant and where its data stands."""
    parser.add_argument(
        "--problem", metavar="NAME", help="a name of `t2t list problems`, or NAME_rev"
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


def add_text_flags(parser: argparse.ArgumentParser) -> None:
    """Registers the files of a problem that takes files."""
    group = parser.add_argument_group(
        "text of --problem text_pairs",
        "UTF-8, plain or gzipped, one sentence a line. Without dev files, some of the "
        "training text is held out.",
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
        "Trees in the Penn Treebank's brackets, UTF-8, plain or gzipped, one a line or "
        "over many lines each.",
    )
    for split in SPLITS:
        group.add_argument(
            f"--{split}_trees", metavar="FILE", type=Path, help=f"{split} trees"
        )


def add_vocabulary_flags(parser: argparse.ArgumentParser) -> None:
    """Registers how the text is cut into subwords."""
    group = parser.add_argument_group(
        "vocabulary", "Learnt from the training text; defaults are the problem's own."
    )
    group.add_argument(
        "--vocab_size",
        metavar="N",
        type=at_least(1, int),
        help="subwords, the special ones and 256 bytes included (text_pairs: 8000; "
        "32000 suits a million pairs and more)",
    )
    group.add_argument(
        "--vocab_type",
        dest="model_type",
        choices=("bpe", "unigram"),
        help="how subwords are learnt (text_pairs: bpe)",
    )
    group.add_argument(
        "--separate_vocabularies",
        dest="shared_vocabulary",
        action="store_const",
        const=False,
        help="one vocabulary a side (default: one for both)",
    )
    group.add_argument(
        "--character_coverage",
        metavar="SHARE",
        type=at_least(0, float),
        help="share of the characters that get a subword of their own; the others "
        "are spelt in bytes (default: 0.9999)",
    )
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


def add_shard_flags(parser: argparse.ArgumentParser) -> None:
    """Registers which pairs become shards, and how many."""
    group = parser.add_argument_group("preparation")
    group.add_argument(
        "--max_length",
        metavar="N",
        type=at_least(2, int),
        help="leave out pairs with a side of more subwords, end of sentence included "
        "(default: 256)",
    )
    group.add_argument(
        "--max_length_ratio",
        metavar="R",
        type=at_least(0, float),
        help="leave out training pairs with a side this many times as long as the "
        "other, in subwords (default: 0, keep all)",
    )
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
    group.add_argument(
        "--num_shards",
        metavar="N",
        type=at_least(1, int),
        help="files of the training split (default: 10)",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=at_least(0, int),
        help="decides the order of the training pairs (default: 1)",
    )


def at_least(
    smallest: int, kind: Callable[[str], Any], largest: int | None = None
) -> Callable[[str], Any]:
    """Gives the `type` of a flag whose number must not be smaller, or larger."""
    limits = f"at least {smallest}"
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
