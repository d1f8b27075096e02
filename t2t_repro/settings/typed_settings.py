"""Frozen, typed settings with units, ranges, text overrides and JSON.

The base class of `HParams`, `DecodeHParams`, `PrepareSettings` and `TrainSettings`.
Differs from tensor2tensor's `HParams` (utils/hparam.py), which also accepts attributes
that nothing reads.
"""

from __future__ import annotations

import dataclasses
import math
import os
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from t2t_repro.errors import UsageError, UserError, unknown_name

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
    """Description of a setting, which `setting` and its annotation declare.

    Attributes:
        help: One line for listings.
        unit: Unit of the number; empty for pure numbers and choices.
        choices: Accepted values; empty if any value of the type is accepted. Those of a
            `Literal` need not be repeated.
        at_least: Smallest accepted value.
        above: Exclusive lower bound.
        at_most: Largest accepted value.
        below: Exclusive upper bound.
        read_by: Commands that read the setting; `parse_for` refuses it elsewhere.
        kind: Type of the value: int, float, bool or str.
        optional: Whether None is accepted as well.
        required: Whether the setting has no default.
        default: Value if the setting is not given; None if it is required.
    """

    help: str
    unit: str = ""
    choices: tuple[Value, ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    read_by: tuple[str, ...] = ()
    kind: type = str
    optional: bool = False
    required: bool = False
    default: Value = None

    def typed(self, name: str, value: object) -> Value:
        """Return a value with the type of the setting; a float may be given as an int.

        Raises:
            UserError: If the value has another type, or is not accepted.
        """
        if value is None and self.optional:
            return None
        if self.kind is float and type(value) is int:
            try:
                value = float(value)
            except OverflowError:
                value = math.inf
        if self.kind is str and isinstance(value, os.PathLike):
            value = os.fspath(value)
        wanted = self._expectation(value)
        if wanted is not None:
            raise UserError(f"{name}: received {value!r}, expected {wanted}.")
        return value  # type: ignore[return-value]

    def parsed(self, name: str, text: str) -> Value:
        """Parse one value that the user wrote.

        Raises:
            UserError: If the text is not a value of this type.
        """
        try:
            return _BOOLEANS[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            message = f"{name}: received {text!r}, expected {_EXPECTED[self.kind]}."
            raise UserError(message) from None

    def _expectation(self, value: Any) -> str | None:
        """Describe the accepted values if `value` is not one, else return None."""
        if type(value) is not self.kind:
            return _EXPECTED[self.kind]
        if self.choices:
            accepted = ", ".join(map(str, self.choices))
            return None if value in self.choices else f"one of {accepted}"
        if self.kind is str:
            return None
        if self.kind is float and not math.isfinite(value):
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


@cache
def _settings(cls: type[TypedSettings]) -> dict[str, About]:
    """Return the description of every setting by name, in the order of declaration."""
    hints = get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        if "about" in field.metadata:
            hint, about = hints[field.name], field.metadata["about"]
            optional = isinstance(hint, types.UnionType)
            if optional:
                (hint,) = {*get_args(hint)} - {type(None)}
            if get_origin(hint) is Literal:
                about = dataclasses.replace(about, choices=get_args(hint))
                hint = type(about.choices[0])
            required = field.default is dataclasses.MISSING
            default = None if required else field.default
            found[field.name] = dataclasses.replace(
                about, kind=hint, optional=optional, required=required, default=default
            )
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class TypedSettings:
    """Base of the settings classes.

    Attributes:
        origins: Source of each value by the name of its setting: a registered set, or
            the flag that overrode it. Not compared. A value without an entry was given
            in code.
    """

    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    flag: ClassVar[str] = ""
    how_to_list: ClassVar[str] = ""

    @classmethod
    def argument(cls) -> str:
        """Return the name of the argument that takes overrides, for messages."""
        return cls.flag.removeprefix("--")

    def __post_init__(self) -> None:
        for name, about in _settings(type(self)).items():
            object.__setattr__(self, name, about.typed(name, getattr(self, name)))
        self.check_together()

    def check_together(self) -> None:
        """Raise UserError if values that are valid alone do not fit together."""

    def ineffective_settings(self) -> dict[str, str]:
        """Return the reason by name for settings that the others make irrelevant."""
        return {}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the settings, in the order of declaration."""
        return tuple(_settings(cls))

    @classmethod
    def about(cls, name: str) -> About:
        """Return type, default, help, unit and accepted values of a setting."""
        return _settings(cls)[name]

    def values(self) -> dict[str, Value]:
        """Return the values by name, in the order of declaration."""
        return {name: getattr(self, name) for name in self.names()}

    def parse(self, text: str) -> Self:
        """Apply overrides written as `name=value,name=value`.

        Raises:
            UsageError: If a name is unknown or given twice, a value has the wrong type
                or is out of range, or an override would have no effect.
        """
        try:
            given = self._assignments(text)
            changed = self.replace(**given)
        except UsageError:
            raise
        except UserError as error:
            raise UsageError(f"{self.argument()}: {error}") from None
        idle = changed.ineffective_settings()
        for name in given:
            if name in idle:
                raise UsageError(
                    f"{self.argument()}: {name} would have no effect: {idle[name]}"
                )
        origins = {**changed.origins, **dict.fromkeys(given, self.flag)}
        return dataclasses.replace(changed, origins=origins)

    def parse_for(self, command: str, text: str) -> Self:
        """Apply overrides as `parse` does, for a command that may not read them all.

        Raises:
            UsageError: If the command does not read a setting, or as for `parse`.
        """
        changed = self.parse(text)
        for name, origin in changed.origins.items():
            readers = self.about(name).read_by
            if origin == self.flag and command not in readers:
                known = ", ".join(f"`t2t {reader}`" for reader in readers) or "none"
                raise UsageError(
                    f"{self.argument()}: {name} would have no effect: `t2t {command}` "
                    f"does not read it (commands that do: {known})."
                )
        return changed

    def _assignments(self, text: str) -> dict[str, Value]:
        known = _settings(type(self))
        given: dict[str, Value] = {}
        for piece in text.split(",") if text.strip() else []:
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not equals:
                raise UserError(f"received {piece.strip()!r}, expected name=value.")
            if name not in known:
                raise self._unknown_name(name)
            if name in given:
                raise UserError(f"{name} is given twice; give it once.")
            given[name] = known[name].parsed(name, value)
        return given

    @classmethod
    def _unknown_name(cls, name: str) -> UsageError:
        return unknown_name(
            f"{cls.argument()} name", name, cls.names(), cls.how_to_list
        )

    def replace(self, /, **changes: Value) -> Self:
        """Return a copy with other values; the changed ones lose their origin."""
        for name in changes:
            if name not in self.names():
                raise self._unknown_name(name)
        kept = {name: at for name, at in self.origins.items() if name not in changes}
        return dataclasses.replace(self, **changes, origins=kept)

    def with_origin(self, origin: str) -> Self:
        """Return a copy in which every value without an origin gets `origin`."""
        known = {**dict.fromkeys(self.names(), origin), **self.origins}
        return dataclasses.replace(self, origins=known)

    def diff(self, other: Self) -> dict[str, tuple[Value, Value]]:
        """Return the differences by name, as (value here, value in `other`)."""
        return {
            name: (mine, getattr(other, name))
            for name, mine in self.values().items()
            if mine != getattr(other, name)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return values and origins in a form that JSON can hold."""
        return {**self.values(), "origins": dict(self.origins)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`.

        Raises:
            UserError: If a name is unknown or missing, or a value is refused.
        """
        for name in values:
            if name not in (*cls.names(), "origins"):
                raise cls._unknown_name(name)
        missing = [
            name
            for name, about in _settings(cls).items()
            if about.required and name not in values
        ]
        if missing:
            raise UserError(
                f"received settings without {', '.join(missing)}, expected a value for "
                "every name; they were written by another version or by hand."
            )
        return cls(**values)
