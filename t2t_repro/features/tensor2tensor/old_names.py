"""tensor2tensor's problems, sets and hparams, and their names here.

`data/names.toml` has the names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class OldProblem:
    """A problem of tensor2tensor.

    Attributes:
        name: Registered problem; empty if none has the same text.
        vocab_size: Number of subwords; None for the problem's own.
        answer: Difference of the text, or the nearest problem.
    """

    name: str = ""
    vocab_size: int | None = None
    answer: str = ""


@dataclass(frozen=True)
class OldSet:
    """An hparams set of tensor2tensor.

    Attributes:
        base: Registered set to start from; empty if no set has the same values.
        changes: Hparams that differ from it.
        answer: The nearest set, if no set has the same values.
    """

    base: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


@dataclass(frozen=True)
class OldHParam:
    """An hparam of tensor2tensor that does not exist here.

    Attributes:
        answer: Its replacement, or the reason why it needs none.
        harmless: Values that ask for nothing; None if that is true of all values.
            Other values end the command.
        renamed: Name of the hparam that replaces it.
    """

    answer: str
    harmless: tuple[str, ...] | None = None
    renamed: str = ""


def _rows(table: str) -> Iterator[tuple[str, Any]]:
    """Yield each name of a table with its values."""
    for names, values in _NAMES[table].items():
        for name in names.split():
            yield name, values


def _set(changes: str = "", **others: str) -> OldSet:
    return OldSet(changes=dict(x.split("=") for x in changes.split(",") if x), **others)


def _hparam(harmless: list[str] | None = None, **others: str) -> OldHParam:
    return OldHParam(harmless=None if harmless is None else tuple(harmless), **others)


_FILE = resources.files("t2t_repro.features.tensor2tensor") / "data" / "names.toml"
_NAMES = tomllib.loads(_FILE.read_text(encoding="utf-8"))

PROBLEMS = {name: OldProblem(**values) for name, values in _rows("problems")}
# Beginnings of the names of problems that are not here.
OTHER_PROBLEMS = dict(_rows("other_problems"))
SETS = {name: _set(**values) for name, values in _rows("sets")}
HPARAMS = {name: _hparam(**values) for name, values in _rows("hparams")}
DECODE_HPARAMS = {name: _hparam(**values) for name, values in _rows("decode_hparams")}
# (name, value) of tensor2tensor -> value here.
HPARAM_VALUES = {("pos", "timing"): "timing_concat"}
# Problem that reads the data of any problem of tensor2tensor; see `old_data.adopt`.
ANY_PROBLEM = "text_pairs"
# The legacy schedule with `noam` decay: equation (3) of the paper.
NOAM = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"


def legacy_constant(learning_rate: float) -> float:
    """Return `learning_rate_constant` of the legacy schedule with Adam.

    Source: tensor2tensor utils/learning_rate.py: 5000 times the rate, times 0.002.
    """
    return round(10.0 * learning_rate, 9)
