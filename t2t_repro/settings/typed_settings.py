"""Frozen, typed settings with units, ranges, text overrides and JSON.

The base of `HParams` and `DecodeHParams`. Differs from tensor2tensor's `HParams`
(utils/hparam.py), on which any attribute could be set, whether or not anything read it.

"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self, get_type_hints

from t2t_repro.errors import UsageError, UserError, unknown_name

Value = int | float | bool | str

_EXPECTED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclasses.dataclass(frozen=True)
class About:
    """What is known of a setting beside its type.

    Attributes:
        help: One line for listings.
        unit: What the number counts; empty for pure numbers and choices.
        choices: The values that are accepted; empty where any value of the type is.
        at_least: Smallest accepted value.
        above: Value that must be exceeded.
        at_most: Largest accepted value.
        below: Value that must not be reached.
    """

    help: str
    unit: str = ""
    choices: tuple[Value, ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def expectation(self, value: Value) -> str | None:
        """Says what was expected where `value` is refused, else None."""
        if self.choices:
            accepted = ", ".join(map(str, self.choices))
            return None if value in self.choices else f"one of {accepted}"
        if isinstance(value, str):
            return None
        if not math.isfinite(value):
            return "a finite number"
        if self.at_least is not None and value < self.at_least:
            return f"at least {self.at_least:g}"
        if self.above is not None and value <= self.above:
            return f"more than {self.above:g}"
        if self.at_most is not None and value > self.at_most:
            return f"at most {self.at_most:g}"
        if self.below is not None and value >= self.below:
            return f"less than {self.below:g}"
        return None


def setting(help: str, default: Value | None = None, **about: Any) -> Any:
    """Declares a field of a settings class; keywords are those of `About`.

    Without `default` the field must be given whenever the class is constructed.
    """
    metadata = {"about": About(help, **about)}
    if default is None:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@cache
def _types(cls: type[TypedSettings]) -> dict[str, type]:
    """Field name -> type of every setting, in the order of declaration."""
    hints = get_type_hints(cls)
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(cls)
        if "about" in field.metadata
    }


def _typed(name: str, value: object, expected: type) -> Value:
    """Returns `value` as its field's type; whole numbers pass as numbers."""
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise UserError(f"{name}: received {value!r}, expected {_EXPECTED[expected]}.")
    return value  # type: ignore[return-value]


def _from_text(name: str, text: str, expected: type) -> Value:
    """Reads one value as the user wrote it."""
    try:
        return _BOOLEANS[text.lower()] if expected is bool else expected(text)
    except (KeyError, ValueError):
        message = f"{name}: received {text!r}, expected {_EXPECTED[expected]}."
        raise UserError(message) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TypedSettings:
    """Base of the settings classes.

    Attributes:
        origins: Name of a setting -> where its value comes from (a registered set, or
            the flag that overrode it). Not compared; a value without an entry was given
            in code.
    """

    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    flag: ClassVar[str]
    how_to_list: ClassVar[str]

    def __post_init__(self) -> None:
        for name, expected in _types(type(self)).items():
            value = _typed(name, getattr(self, name), expected)
            wanted = self.about(name).expectation(value)
            if wanted is not None:
                raise UserError(f"{name}: received {value!r}, expected {wanted}.")
            object.__setattr__(self, name, value)
        self.check_together()

    def check_together(self) -> None:
        """Raises UserError where values that are fine alone do not fit together."""

    def ineffective_settings(self) -> dict[str, str]:
        """Returns setting -> reason for those that nothing reads beside the others."""
        return {}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of the settings, in the order of declaration."""
        return tuple(_types(cls))

    @classmethod
    def about(cls, name: str) -> About:
        """Returns help, unit and accepted values of a setting."""
        return cls.__dataclass_fields__[name].metadata["about"]

    def values(self) -> dict[str, Value]:
        """Returns name -> value, in the order of declaration."""
        return {name: getattr(self, name) for name in self.names()}

    def parse(self, text: str) -> Self:
        """Applies overrides written as `name=value,name=value`.

        Raises:
            UsageError: A name is unknown or given twice, a value has the wrong type or
                is out of range, or an override would have no effect.
        """
        try:
            given = self._assignments(text)
            changed = self.replace(**given)
        except UsageError:
            raise
        except UserError as error:
            raise UsageError(f"{self.flag}: {error}") from None
        idle = changed.ineffective_settings()
        for name in given:
            if name in idle:
                raise UsageError(
                    f"{self.flag}: {name} would have no effect: {idle[name]}"
                )
        origins = {**changed.origins, **dict.fromkeys(given, self.flag)}
        return dataclasses.replace(changed, origins=origins)

    def _assignments(self, text: str) -> dict[str, Value]:
        types = _types(type(self))
        given: dict[str, Value] = {}
        for piece in text.split(",") if text.strip() else []:
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not equals:
                raise UserError(f"received {piece.strip()!r}, expected name=value.")
            if name not in types:
                raise self._unknown(name)
            if name in given:
                raise UserError(f"{name} is given twice; give it once.")
            given[name] = _from_text(name, value, types[name])
        return given

    @classmethod
    def _unknown(cls, name: str) -> UsageError:
        return unknown_name(f"{cls.flag} name", name, cls.names(), cls.how_to_list)

    def replace(self, **changes: Value) -> Self:
        """Returns a copy with other values; the changed ones lose their origin."""
        for name in changes:
            if name not in self.names():
                raise self._unknown(name)
        kept = {name: at for name, at in self.origins.items() if name not in changes}
        return dataclasses.replace(self, **changes, origins=kept)

    def with_origin(self, origin: str) -> Self:
        """Returns a copy in which every value without an origin comes from `origin`."""
        known = {**dict.fromkeys(self.names(), origin), **self.origins}
        return dataclasses.replace(self, origins=known)

    def diff(self, other: Self) -> dict[str, tuple[Value, Value]]:
        """Returns name -> (value here, value in `other`) where the two differ."""
        return {
            name: (mine, getattr(other, name))
            for name, mine in self.values().items()
            if mine != getattr(other, name)
        }

    def to_dict(self) -> dict[str, Any]:
        """Returns values and origins as JSON can hold them."""
        return {**self.values(), "origins": dict(self.origins)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`.

        Raises:
            UserError: A name is unknown or missing, or a value is refused.
        """
        for name in values:
            if name not in (*cls.names(), "origins"):
                raise cls._unknown(name)
        required = [
            field.name
            for field in dataclasses.fields(cls)
            if field.default is dataclasses.MISSING and "about" in field.metadata
        ]
        missing = [name for name in required if name not in values]
        if missing:
            raise UserError(
                f"received settings without {', '.join(missing)}, expected a value for "
                "every name; they were written by another version or by hand."
            )
        return cls(**values)
