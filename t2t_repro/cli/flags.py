"""Flags that several commands share; those of the data are in `data_flags`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from t2t_repro.constants import BLEU_TOKENIZERS
from t2t_repro.errors import UsageError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.typed_settings import TypedSettings

VALUES = "NAME=VALUE,..."
# Flag of a text -> placeholder in the help; otherwise NAME.
METAVARS = {
    "decode_hparams": VALUES,
    "hparams": VALUES,
    "output_dir": "DIR",
    "warm_start_from": "RUN|CHECKPOINT",
}


class FlagContainer(Protocol):
    """An argparse parser, or one of its groups."""

    def add_argument(self, *names: str, **options: Any) -> Any:
        """Add a flag; see `argparse`."""


def add_usr_dir_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--t2t_usr_dir`."""
    parser.add_argument(
        "--t2t_usr_dir",
        metavar="DIR",
        help="folder of a Python package that registers your problems, models and "
        "sets; later, runs that need it find it without this flag",
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
        "--decode_hparams", metavar=VALUES, default="", help=f"settings of: {known}"
    )


def add_setting_flag(
    parser: FlagContainer,
    settings: type[TypedSettings],
    name: str,
    remark: str | None = None,
    metavar: str = "N",
) -> None:
    """Add the flag of a setting, which is None if the flag is not given.

    Args:
        parser: Parser or group.
        settings: Class of the setting.
        name: Name of the setting and of the flag.
        remark: End of the help; by default the setting's default.
        metavar: Placeholder for a number in the help.
    """
    about = settings.about(name)
    if remark is None:
        has_default = about.default not in (None, "")
        remark = f" (default: {about.default})" if has_default else ""
    if about.choices:
        options: dict[str, Any] = {"choices": about.choices}
    elif about.kind is bool:
        options = {"action": argparse.BooleanOptionalAction}
    elif about.kind is str:
        options = {"metavar": METAVARS.get(name, "NAME")}
    else:
        limits = number_in_range(about.at_least, about.kind, about.at_most)
        options = {"metavar": metavar, "type": limits}
    parser.add_argument(f"--{name}", help=about.help + remark, **options)


def add_bleu_tokenizer_flag(parser: FlagContainer, default: str) -> None:
    """Add `--bleu_tokenizer`, which is None if it is not given.

    Args:
        parser: Parser or group.
        default: Behaviour of the command without the flag.
    """
    parser.add_argument(
        "--bleu_tokenizer",
        choices=BLEU_TOKENIZERS,
        help=f"sacreBLEU's tokenizer of BLEU, which its signature names (default: "
        f"{default}; auto = zh, ja-mecab or char for text without spaces, else 13a)",
    )


def add_reference_flag(parser: FlagContainer, *, required: bool = False) -> None:
    """Add `--reference`, a list of files; None if it is not given."""
    parser.add_argument(
        "--reference",
        metavar="FILE",
        nargs="+",
        action="extend",
        required=required,
        help="reference translation, line by line; several files = several references "
        "of each line",
    )


class _Refused(argparse.Action):
    """Action that refuses a flag of other versions, with an explanation."""

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
        smallest: Smallest accepted number, if any.
        kind: `int` or `float`.
        largest: Largest accepted number, if any.

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
