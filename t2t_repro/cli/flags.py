"""Flags that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Protocol

from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.typed_settings import TypedSettings


class FlagContainer(Protocol):
    """An argparse parser, or a group of one."""

    def add_argument(self, *names: str, **options: Any) -> Any: ...


def add_usr_dir_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--t2t_usr_dir`."""
    parser.add_argument(
        "--t2t_usr_dir",
        metavar="DIR",
        help="folder of a Python package that registers your problems, models and sets",
    )


def add_system_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a run and a checkpoint."""
    parser.add_argument(
        "--output_dir",
        metavar="DIR",
        required=True,
        help="folder of the run, as given to t2t train",
    )
    parser.add_argument(
        "--checkpoint_path",
        metavar="latest|best|averaged|PATH",
        help="weights to use (default: averaged if it is as new as the latest, else "
        "latest)",
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
    """Add the flag of a setting; None stands for a flag that is not given.

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
    elif kind is str:
        options = {"metavar": "NAME"}
    else:
        largest = None if about.at_most is None else int(about.at_most)
        options = {"metavar": "N", "type": at_least(about.at_least, kind, largest)}
    parser.add_argument(f"--{name}", help=about.help + shown, **options)


def at_least(
    smallest: float | None, kind: Callable[[str], Any], largest: int | None = None
) -> Callable[[str], Any]:
    """Return the `type` of a flag whose number has limits."""
    limits = f"at least {smallest:g}" if smallest is not None else "any size"
    if largest is not None:
        limits += f" and at most {largest}"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        # The comparison also refuses "nan".
        too_large = largest is not None and value is not None and value > largest
        too_small = smallest is not None and (value is None or not value >= smallest)
        if value is None or too_small or too_large:
            expected = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"received {text!r}, expected {expected} of {limits}"
            )
        return value

    return parse
