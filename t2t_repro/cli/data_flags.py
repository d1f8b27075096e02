"""Flags of a problem, its text and its preparation.

A flag that is not given has the value None, which no given flag has. The setting then
comes from the problem, the prepared data, or the run that is resumed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from t2t_repro.cli.flags import (
    FlagContainer,
    add_refused_flag,
    add_usr_dir_flag,
    number_in_range,
)
from t2t_repro.data.problem import SPLITS
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
    _add_number(group, "character_coverage", float)
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
    usual = PrepareSettings().max_pair_length
    _add_number(group, "max_pair_length", int, f"default: {usual}, or the problem's")
    _add_number(group, "max_length_ratio", float)
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
    _add_number(group, "subword_copies", int)
    _add_number(group, "subword_sampling", float)
    _add_number(group, "num_shards", int)
    _add_number(group, "shuffle_seed", int)
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


def _add_number(
    group: FlagContainer,
    name: str,
    kind: type[int | float],
    remark: str | None = None,
) -> None:
    """Add the flag of a numeric setting of `PrepareSettings`.

    Args:
        group: Group of flags.
        name: Name of the setting.
        kind: Type of the number.
        remark: Last part of the help; by default the setting's default.
    """
    about = PrepareSettings.about(name)
    remark = remark or f"default: {getattr(PrepareSettings(), name):g}"
    group.add_argument(
        f"--{name}",
        metavar="N" if kind is int else "X",
        type=number_in_range(about.at_least or 0, kind, about.at_most),
        help=f"{about.help} ({remark})",
    )
