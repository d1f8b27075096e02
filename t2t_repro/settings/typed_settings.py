"""Frozen, typed settings with units, ranges, text overrides and JSON.

The base class of `HParams`, `DecodeHParams`, `PrepareSettings` and `TrainSettings`.
Differs from tensor2tensor's `HParams` (utils/hparam.py), which also accepts attributes
that nothing reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self, get_type_hints

from t2t_repro.errors import UsageError, UserError, unknown_name
from t2t_repro.settings.declarations import (
    About,
    SettingType,
    Value,
    setting_type,
    typed_value,
    value_from_text,
)


@cache
def _types(cls: type[TypedSettings]) -> dict[str, SettingType]:
    """Return the type of every setting by name, in the order of declaration."""
    hints = get_type_hints(cls)
    return {
        field.name: setting_type(hints[field.name])
        for field in dataclasses.fields(cls)
        if "about" in field.metadata
    }


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
        for name, expected in _types(type(self)).items():
            value = typed_value(name, getattr(self, name), expected)
            wanted = self.about(name).expectation(value)
            if wanted is not None:
                raise UserError(f"{name}: received {value!r}, expected {wanted}.")
            object.__setattr__(self, name, value)
        self.check_together()

    def check_together(self) -> None:
        """Raise UserError if values that are valid alone do not fit together."""

    def ineffective_settings(self) -> dict[str, str]:
        """Return the reason by name for settings that the others make irrelevant."""
        return {}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the settings, in the order of declaration."""
        return tuple(_types(cls))

    @classmethod
    def type_of(cls, name: str) -> SettingType:
        """Return the type of a setting."""
        return _types(cls)[name]

    @classmethod
    def default_of(cls, name: str) -> Value:
        """Return the default of a setting, None if it has none."""
        default = cls.__dataclass_fields__[name].default
        return None if default is dataclasses.MISSING else default

    @classmethod
    def about(cls, name: str) -> About:
        """Return help, unit and accepted values of a setting."""
        return cls.__dataclass_fields__[name].metadata["about"]

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
        known = _types(type(self))
        given: dict[str, Value] = {}
        for piece in text.split(",") if text.strip() else []:
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not equals:
                raise UserError(f"received {piece.strip()!r}, expected name=value.")
            if name not in known:
                raise self._unknown(name)
            if name in given:
                raise UserError(f"{name} is given twice; give it once.")
            given[name] = value_from_text(name, value, known[name].kind)
        return given

    @classmethod
    def _unknown(cls, name: str) -> UsageError:
        return unknown_name(
            f"{cls.argument()} name", name, cls.names(), cls.how_to_list
        )

    def replace(self, **changes: Value) -> Self:
        """Return a copy with other values; the changed ones lose their origin."""
        for name in changes:
            if name not in self.names():
                raise self._unknown(name)
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
