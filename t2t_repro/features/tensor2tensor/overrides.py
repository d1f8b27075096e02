"""Translate `name=value,name=value` of tensor2tensor."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor.hparams import OldHParam
from t2t_repro.features.tensor2tensor.translation import Translation


def translated(
    result: Translation,
    flag: str,
    text: str,
    old: Mapping[str, OldHParam],
    values: Mapping[tuple[str, str], str],
) -> dict[str, str]:
    """Return the overrides that have a name here, and answer the others.

    Names that neither tensor2tensor nor this project has are kept, for the `t2t`
    command to report them.

    Args:
        result: Gets the answers.
        flag: Name of the flag, for messages.
        text: Overrides as the user wrote them.
        old: Names of tensor2tensor that are none here.
        values: Values that are called differently here.

    Raises:
        UsageError: If an override asks for a feature that does not exist here.
    """
    kept: dict[str, str] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = (part.strip() for part in piece.partition("="))
        known = old.get(name)
        if known is None:
            kept[name] = values.get((name, value), value)
        elif known.renamed:
            kept[known.renamed] = value
        elif known.harmless is None or value.lower() in known.harmless:
            result.answer(f"--{flag} {piece}", known.answer)
        else:
            raise UsageError(f"--{flag}: {piece} is not possible: {known.answer}.")
    return kept


def joined(overrides: Mapping[str, str]) -> str:
    """Return overrides as text."""
    return ",".join(
        f"{name}={value}" if value else name for name, value in overrides.items()
    )
