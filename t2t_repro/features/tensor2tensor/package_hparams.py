"""tensor2tensor's hparams in a package: they can be changed until they are used.

`data/hparams.json` has the values of tensor2tensor 1.15.7. What a package makes of them
becomes an `HParams`; a value that this program cannot follow is refused by name.
"""

from __future__ import annotations

import copy
import functools
import json
import logging
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Self

from t2t_repro import catalogue, registry
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.old_names import (
    HPARAM_VALUES,
    HPARAMS,
    NOAM,
    legacy_constant,
)
from t2t_repro.features.tensor2tensor.package_refusals import decorator
from t2t_repro.settings.hparams import HParams

logger = logging.getLogger(__name__)

_FILE = resources.files("t2t_repro.features.tensor2tensor") / "data" / "hparams.json"
_BASIC, _OLDEST = "basic_params1", "transformer_base_v1"
_WRITTEN = {"true": True, "false": False}


class PackageHParams:
    """A set of hparams, as `tensor2tensor/utils/hparam.py: HParams`.

    Args:
        **values: Values by name.
    """

    def __init__(self, **values: Any) -> None:
        self._names: list[str] = []
        for name, value in values.items():
            self.add_hparam(name, value)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a value under a new name.

        Raises:
            ValueError: If the name is taken.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        self._names.append(name)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Change a value; its type stays.

        Raises:
            KeyError: If the name is unknown.
            ValueError: If the value has another type.
        """
        if name not in self._names:
            raise KeyError(f"Unknown hyperparameter: {name}")
        kind = type(getattr(self, name))
        fits = kind is type(None) or isinstance(value, kind)
        if not fits and not (kind is float and type(value) is int):
            raise ValueError(
                f"Could not cast hparam {name!r} of type {kind.__name__!r} from value "
                f"{value!r}"
            )
        setattr(self, name, kind(value) if kind is float else value)

    def del_hparam(self, name: str) -> None:
        """Remove a value."""
        self._names.remove(name)
        delattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default if the name is unknown."""
        return getattr(self, name) if name in self._names else default

    def values(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: getattr(self, name) for name in self._names}

    def override_from_dict(self, values: Mapping[str, Any]) -> Self:
        """Change several values."""
        for name, value in values.items():
            self.set_hparam(name, value)
        return self

    def parse(self, text: str) -> Self:
        """Change the values that are written as `name=value,name=value`.

        Raises:
            ValueError: If a name is unknown, or a value has another type.
        """
        for piece in filter(None, text.split(",")):
            name, equals, written = (part.strip() for part in piece.partition("="))
            if not equals or name not in self._names:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            kind = type(getattr(self, name))
            if kind is bool:
                lower = written.lower()
                value: Any = _WRITTEN[lower] if lower in _WRITTEN else bool(int(lower))
            else:
                value = kind(written)
            self.set_hparam(name, value)
        return self


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    """Return all values of each set."""
    written = json.loads(_FILE.read_text(encoding="utf-8"))
    basic = written.pop(_BASIC)
    oldest = basic | written.pop(_OLDEST)
    others = {name: oldest | changes for name, changes in written.items()}
    return {_BASIC: basic, _OLDEST: oldest, **others}


def set_functions() -> dict[str, Callable[[], PackageHParams]]:
    """Return the function of each set of tensor2tensor, by its name."""
    return {name: functools.partial(_make, name) for name in _tables()}


def _make(name: str) -> PackageHParams:
    return PackageHParams(**copy.deepcopy(_tables()[name]))


_OWN: dict[str, Callable[[], PackageHParams]] = {}  # the packages' sets


def _register(name: str, function: Callable[[], PackageHParams]) -> Any:
    @functools.wraps(function)
    def registered_set() -> HParams:
        return frozen(name, function())

    registry.register_hparams(name)(registered_set)
    _OWN[name] = function
    return function


register_hparams = decorator(_register)


def hparams(name: str) -> PackageHParams:
    """Return a set of a package or of tensor2tensor, which can be changed.

    Raises:
        UsageError: If the name is unknown.
    """
    known = {**set_functions(), **_OWN}
    if name not in known:
        registry.hparams_sets.entry(name)
        raise UserError(f"the hparams set {name!r} is not tensor2tensor's.")
    return known[name]()


def frozen(name: str, theirs: object) -> HParams:
    """Return a package's set as `HParams`.

    Args:
        name: Name of the set, for messages.
        theirs: What the package's function returned.

    Raises:
        UserError: If it is no set for the Transformer, or has a value that cannot be
            followed here; the message names all such values.
    """
    if not isinstance(theirs, PackageHParams):
        raise UserError(
            f"the hparams set {name!r} returned {theirs!r}, expected HParams"
        )
    values = {key: value for key, value in vars(theirs).items() if key[0] != "_"}
    known = _tables()[_OLDEST]
    missing = [key for key in HParams.names() if key in known and key not in values]
    if missing:
        raise UserError(
            f"the hparams set {name!r} has no {', '.join(missing)}, which the "
            "Transformer needs, in tensor2tensor, too: start from "
            "models.transformer.transformer_base()"
        )
    refusals = [*_refusals(values)]
    if refusals:
        raise UserError(
            f"the hparams set {name!r} has values that cannot be followed here:\n"
            + "\n".join(refusals)
        )
    own = [key for key in values if key not in {*known, *HParams.names(), *HPARAMS}]
    if own:
        logger.info("%s: %s: left out, nothing here reads it", name, ", ".join(own))
    try:
        made = catalogue.hparams("transformer_base_v3").replace(**_translated(values))
        made.check_registered()
    except UserError as error:
        raise UserError(f"the hparams set {name!r}: {error}") from error
    return made


def _refusals(values: Mapping[str, Any]) -> list[str]:
    """Return a line for each value of tensor2tensor that nothing here follows."""
    known = _tables()[_OLDEST]
    found = []
    for key, value in values.items():
        old = HPARAMS.get(key)
        if old is not None:
            fits = old.harmless is None or str(value).lower() in old.harmless
            if not fits and not old.renamed:
                found.append(f"{key}={value}: {old.answer}")
        elif key not in HParams.names() and key in known and value != known[key]:
            found.append(f"{key}={value}: there is no such setting here")
    is_legacy = values["learning_rate_schedule"] == "legacy"
    if is_legacy and (scheme := values.get("learning_rate_decay_scheme")) != "noam":
        found.append(f"learning_rate_decay_scheme={scheme}: use learning_rate_schedule")
    return found


def _translated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by their names here, in the words of `HParams`."""
    found = {}
    for key, value in values.items():
        written = (
            HPARAM_VALUES.get((key, value), value) if type(value) is str else value
        )
        if key in HParams.names():
            found[key] = written
        elif key in HPARAMS and HPARAMS[key].renamed:
            found[HPARAMS[key].renamed] = written
    if values["learning_rate_schedule"] == "legacy":
        found["learning_rate_schedule"] = NOAM
        rate = values.get("learning_rate", 0)
        found["learning_rate_constant"] = legacy_constant(rate)
    return found
