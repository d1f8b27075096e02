"""Declarations of settings: their types, units, ranges and lines of help."""

from __future__ import annotations

import dataclasses
import math
import os
import types
from typing import Any, Literal, NamedTuple, get_args, get_origin

from t2t_repro.errors import UserError

Value = int | float | bool | str | None

_EXPECTED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclasses.dataclass(frozen=True)
class About:
    """Description of a setting beyond its type.

    Attributes:
        help: One line for listings.
        unit: Unit of the number; empty for pure numbers and choices.
        choices: Accepted values; empty if any value of the type is accepted.
        at_least: Smallest accepted value.
        above: Exclusive lower bound.
        at_most: Largest accepted value.
        below: Exclusive upper bound.
        read_by: Commands that read the setting; `parse_for` refuses it elsewhere.
    """

    help: str
    unit: str = ""
    choices: tuple[Value, ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    read_by: tuple[str, ...] = ()

    def expectation(self, value: Value) -> str | None:
        """Describe the accepted values if `value` is not one, else return None."""
        if self.choices:
            accepted = ", ".join(map(str, self.choices))
            return None if value in self.choices else f"one of {accepted}"
        if value is None or isinstance(value, str):
            return None
        if not math.isfinite(value):
            return "a finite number"
        if self.at_least is not None and value < self.at_least:
            return f"at least {self.at_least:.10g}"
        if self.above is not None and value <= self.above:
            return f"more than {self.above:g}"
        if self.at_most is not None and value > self.at_most:
            return f"at most {self.at_most:.10g}"
        if self.below is not None and value >= self.below:
            return f"less than {self.below:g}"
        return None


def setting(help: str, default: Any = dataclasses.MISSING, **about: Any) -> Any:
    """Declare a field of a settings class.

    Args:
        help: One line for listings.
        default: Value if the field is not given; without it the field is required.
        **about: Further attributes of `About`.
    """
    return dataclasses.field(default=default, metadata={"about": About(help, **about)})


class SettingType(NamedTuple):
    """Type of a setting.

    Attributes:
        kind: int, float, bool or str.
        optional: Whether None is accepted as well.
    """

    kind: type
    optional: bool


def setting_type(hint: Any) -> SettingType:
    """Return the type of a setting from its annotation."""
    if isinstance(hint, types.UnionType):
        (kind,) = (member for member in get_args(hint) if member is not type(None))
        return SettingType(kind, optional=True)
    if get_origin(hint) is Literal:
        return SettingType(type(get_args(hint)[0]), optional=False)
    return SettingType(hint, optional=False)


def typed_value(name: str, value: object, expected: SettingType) -> Value:
    """Return a value with the type of its field; a float may be given as an int.

    Raises:
        UserError: If the value has another type.
    """
    if value is None and expected.optional:
        return None
    if expected.kind is float and type(value) is int:
        return float(value)
    if expected.kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value) is not expected.kind:
        wanted = _EXPECTED[expected.kind]
        raise UserError(f"{name}: received {value!r}, expected {wanted}.")
    return value  # type: ignore[return-value]


def value_from_text(name: str, text: str, kind: type) -> Value:
    """Parse one value that the user wrote.

    Raises:
        UserError: If the text is no value of this type.
    """
    try:
        return _BOOLEANS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        message = f"{name}: received {text!r}, expected {_EXPECTED[kind]}."
        raise UserError(message) from None
