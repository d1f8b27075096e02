"""The tables of docs/from_tensor2tensor.md, made from those of the code.

`python tests/features/tensor2tensor/documented_tables.py` writes them into the page,
between the lines `<!-- table: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.features.tensor2tensor.old_names import (
    DECODE_HPARAMS,
    HPARAM_VALUES,
    HPARAMS,
    OTHER_PROBLEMS,
    PROBLEMS,
    SETS,
    OldHParam,
)
from t2t_repro.features.tensor2tensor.package_refusals import ANSWERS
from t2t_repro.text_tables import markdown

PAGE = Path(__file__).parents[3] / "docs" / "from_tensor2tensor.md"
Row = tuple[str, ...]


def all_tables() -> dict[str, list[str]]:
    rows = {
        "answers": list(_answers()),
        "problems": list(_problems()),
        "sets": list(_sets()),
        "hparams": list(_hparams()),
        "decode_hparams": list(_overrides(DECODE_HPARAMS)),
    }
    return {name: markdown(_joined(table)) for name, table in rows.items()}


def _joined(table: list[Row]) -> list[Row]:
    names: dict[Row, list[str]] = {}
    for name, *cells in table:
        names.setdefault(tuple(cells), []).append(name)
    return [(", ".join(found), *cells) for cells, found in names.items()]


def _answers() -> Iterator[Row]:
    yield ("name of tensor2tensor with", "what to write instead")
    for word, instead in ANSWERS.items():
        yield (f"`{word}`", instead)


def _sets() -> Iterator[Row]:
    yield ("set of tensor2tensor", "`--hparams_set`", "`--hparams`")
    for name, old in SETS.items():
        if old.base:
            changes = ", ".join(f"{key}={value}" for key, value in old.changes.items())
            yield (f"`{name}`", f"`{old.base}`", f"`{changes}`" if changes else "")
    for name, old in SETS.items():
        if not old.base:
            yield (f"`{name}`", "refused", old.answer)


def _problems() -> Iterator[Row]:
    yield ("problem of tensor2tensor", "`--problem`", "`--vocab_size`", "")
    for name, old in PROBLEMS.items():
        here = f"`{old.name}`" if old.name else "refused"
        yield (f"`{name}`", here, str(old.vocab_size or ""), old.answer)
    for beginning, answer in OTHER_PROBLEMS.items():
        yield (f"`{beginning}...`, if not registered", "refused", "", answer)


def _hparams() -> Iterator[Row]:
    rows = _overrides(HPARAMS)
    yield next(rows)
    for (name, theirs), ours in HPARAM_VALUES.items():
        yield (f"`{name}={theirs}`", f"`{name}={ours}`")
    yield from rows


def _overrides(old: dict[str, OldHParam]) -> Iterator[Row]:
    yield ("name of tensor2tensor", "here")
    for name, known in old.items():
        yield (f"`{name}`", _override(known))


def _override(known: OldHParam) -> str:
    if known.renamed:
        return f"`{known.renamed}`; {known.answer}"
    if known.harmless is None:
        return f"left out: {known.answer}"
    values = " or ".join(dict.fromkeys(repr(value)[1:-1] for value in known.harmless))
    return f"refused unless {values or 'empty'}: {known.answer}"


def with_tables(page: str) -> str:
    """Return a page with its tables replaced by those of the code."""
    made = all_tables()

    def replaced(match: re.Match[str]) -> str:
        lines = "\n".join(made[match[1]])
        return f"<!-- table: {match[1]} -->\n{lines}\n<!-- end -->"

    pattern = r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->"
    return re.sub(pattern, replaced, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
