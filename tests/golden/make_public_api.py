"""Write the names and signatures that programs and users' packages import.

Run `python tests/golden/make_public_api.py` after a change that is meant, and see in
the difference that nothing else has changed.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).with_name("public_api.json")
MODULES = (
    "t2t_repro.data.problem",
    "t2t_repro.layers",
    "t2t_repro.models.transformer",
    "t2t_repro.registry",
    "t2t_repro.runs",
    "t2t_repro.settings.decode_hparams",
    "t2t_repro.settings.hparams",
    "t2t_repro.settings.prepare_settings",
    "t2t_repro.settings.train_settings",
)


def public_api() -> dict[str, dict[str, Any]]:
    """Return the signature of each public function, and of each class and its members.

    Names of a package are those of its `__all__`; a module has those that it defines.
    """
    api: dict[str, dict[str, Any]] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or [
            own
            for own, value in vars(module).items()
            if getattr(value, "__module__", None) == name and not own.startswith("_")
        ]
        api[name] = {own: _described(getattr(module, own)) for own in sorted(names)}
    return api


def _described(value: Any) -> Any:
    if not inspect.isclass(value):
        return _signature(value) if callable(value) else type(value).__name__
    members = {"()": _signature(value)}
    for name, member in sorted(vars(value).items()):
        if name.startswith("_"):
            continue
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function):
            members[name] = _signature(function)
        elif isinstance(member, property):
            members[name] = "property"
    return members


def _signature(function: Any) -> str:
    try:
        return re.sub(" at 0x[0-9a-f]+", "", str(inspect.signature(function)))
    except ValueError:  # of a class of another language
        return "(...)"


def main() -> None:
    GOLDEN.write_text(json.dumps(public_api(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
