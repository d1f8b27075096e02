"""Flags that several commands share.

A data flag or training flag that is not given is None, which no given flag is. The
setting then comes from the problem, the prepared data, or the run to resume.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol

from t2t_repro.data.problem import SPLITS
from t2t_repro.errors import UsageError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.settings.typed_settings import TypedSettings


class FlagContainer(Protocol):
    """An argparse parser, or one of its groups."""

    def add_argument(self, *names: str, **options: Any) -> Any:
        """Add a flag; see `argparse`."""


def add_usr_dir_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--t2t_usr_dir`."""
    parser.add_argument(
        "--t2t_usr_dir",
        metavar="DIR",
        help="folder of a Python package that registers your problems, models and sets",
    )


def add_system_flags(
    parser: argparse.ArgumentParser, *, required: bool = True, ensembles: bool = False
) -> None:
    """Add the flags that name a run and a checkpoint.

    Args:
        parser: Parser of the command.
        required: Whether the command always needs a run.
        ensembles: Whether several checkpoints may be given.
    """
    several = (
        "; several, separated by commas, form an ensemble, and a PATH may also be in "
        "another run, or the folder of one"
    )
    parser.add_argument(
        "--output_dir",
        metavar="DIR",
        required=required,
        help="folder of the run, as given to t2t train",
    )
    parser.add_argument(
        "--checkpoint_path",
        metavar="latest|best|averaged|PATH",
        help="weights to use (default: averaged if it is as new as the latest, else "
        "latest)" + (several if ensembles else ""),
    )
    add_usr_dir_flag(parser)


def add_decode_hparams_flag(parser: argparse.ArgumentParser, command: str) -> None:
    """Add `--decode_hparams`, with the settings that a command reads in its help."""
    known = "; ".join(
        f"{name}={value} ({DecodeHParams.about(name).help})"
        for name, value in DecodeHParams().values().items()
        if command in DecodeHParams.about(name).read_by
    )
    parser.add_argument(
        "--decode_hparams", default="", help=f'"name=value,name=value" of: {known}'
    )


def add_setting_flag(
    parser: FlagContainer,
    settings: type[TypedSettings],
    name: str,
) -> None:
    """Add the flag of a setting, which is None if the flag is not given.

    Args:
        parser: Parser or group.
        settings: Class of the setting.
        name: Name of the setting and of the flag.
    """
    about, kind = settings.about(name), settings.type_of(name).kind
    default = settings.default_of(name)
    shown = "" if default in (None, "") else f" (default: {default})"
    if about.choices:
        options: dict[str, Any] = {"choices": about.choices}
    elif kind is bool:
        options = {"action": argparse.BooleanOptionalAction}
    elif kind is str:
        options = {"metavar": "NAME"}
    else:
        limits = number_in_range(about.at_least, kind, about.at_most)
        options = {"metavar": "N", "type": limits}
    parser.add_argument(f"--{name}", help=about.help + shown, **options)


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
    _add_number(group, "max_pair_length", int)
    _add_number(group, "max_length_ratio", float)
    repeats = group.add_mutually_exclusive_group()
    repeats.add_argument(
        "--drop_duplicates",
        action="store_const",
        const=True,
        help="leave out repeated training pairs (default for text_pairs)",
    )
    repeats.add_argument(
        "--keep_duplicates",
        dest="drop_duplicates",
        action="store_const",
        const=False,
        help="keep them (default for other problems)",
    )
    _add_number(group, "num_shards", int)
    _add_number(group, "shuffle_seed", int)
    group.add_argument(
        "--num_workers",
        metavar="N",
        type=number_in_range(1, int),
        help="processes that encode a long text; the data does not depend on it "
        "(default: all cores)",
    )
    add_refused_flag(parser, "--seed", "it is now called --shuffle_seed")
    add_refused_flag(parser, "--max_length", "it is now called --max_pair_length")


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


class _Refused(argparse.Action):
    """Refuse a flag of other versions, with an explanation."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        raise UsageError(f"received {self.option_strings[0]}: {self.const}")


def add_refused_flag(parser: argparse.ArgumentParser, flag: str, why: str) -> None:
    """Refuse a flag, whatever its value.

    Args:
        parser: Parser of the command.
        flag: The flag. `--help` does not show it.
        why: The rest of the message.
    """
    parser.add_argument(
        flag, action=_Refused, nargs="?", const=why, help=argparse.SUPPRESS
    )


def number_in_range(
    smallest: float | None, kind: Callable[[str], Any], largest: float | None = None
) -> Callable[[str], Any]:
    """Make the `type` of a flag whose value is a number in a range.

    Args:
        smallest: Smallest accepted number, if there is one.
        kind: `int` or `float`.
        largest: Largest accepted number, if there is one.

    Returns:
        Function that parses the flag's text.
    """
    limits = "any size" if smallest is None else f"at least {smallest:g}"
    if largest is not None:
        limits += f" and at most {largest:.10g}"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        # The comparison also refuses "nan".
        too_small = smallest is not None and value is not None and not value >= smallest
        too_large = largest is not None and value is not None and value > largest
        if value is None or too_small or too_large:
            expected = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"received {text!r}, expected {expected} of {limits}"
            )
        return value

    return parse
