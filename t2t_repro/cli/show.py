"""`t2t show NAME`: explain a problem, hparams set, model or attention."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Sequence

from t2t_repro import catalogue, registry
from t2t_repro.cli.flags import add_usr_dir_flag
from t2t_repro.cli.list import KINDS
from t2t_repro.cli.loading import load_catalogue
from t2t_repro.cli.streams import table_lines
from t2t_repro.errors import UsageError, unknown_name
from t2t_repro.settings.hparams import HParams

DESCRIPTION = "Explain a problem, hparams set, model or attention, value by value."


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("name", metavar="NAME", help="a name that `t2t list` prints")
    parser.add_argument(
        "--diff",
        metavar="NAME2",
        help="another hparams set: print only the values that differ",
    )
    add_usr_dir_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Print the entry of the name, in every kind that has it."""
    load_catalogue(args.t2t_usr_dir)
    if args.diff is not None:
        print(_difference(args.name, args.diff))
        return 0
    described = [
        describe(args.name)
        for knows, describe in (
            (_is_problem, _problem),
            (registry.hparams_sets.__contains__, _hparams_set),
            (registry.models.__contains__, _model),
            (registry.attentions.__contains__, _attention),
        )
        if knows(args.name)
    ]
    if not described:
        registry.hparams_sets.check_not_refused(args.name)
        raise unknown_name(
            "name", args.name, _all_names(), "`t2t list` names them all."
        )
    print("\n\n".join(described))
    return 0


def _all_names() -> list[str]:
    return [name for registered, _ in KINDS.values() for name in registered.names()]


def _is_problem(name: str) -> bool:
    base = name.removesuffix(registry.REVERSED_SUFFIX)
    return base in registry.problems or name in registry.problems


def _hparams_set(name: str) -> str:
    hparams = catalogue.hparams(name)
    rows = [("NAME", "VALUE", "UNIT", "FROM", "MEANING")]
    for setting, value in hparams.values().items():
        about = hparams.about(setting)
        origin = hparams.origins[setting]
        rows.append((setting, str(value), about.unit, origin, about.help))
    card = _text(inspect.getdoc(registry.hparams_sets.get(name)))
    return "\n\n".join((f"hparams set {name}", card, _table(rows)))


def _difference(left: str, right: str) -> str:
    for name in (left, right):
        if name not in registry.hparams_sets and name in _all_names():
            raise UsageError(
                f"--diff compares hparams sets, received {name!r}.\n"
                "`t2t list hparams` names them all."
            )
    hparams = catalogue.hparams(left)
    differing = hparams.diff(catalogue.hparams(right))
    if not differing:
        return f"{left} and {right} hold the same values."
    rows = [("NAME", left, right, "UNIT", "MEANING")]
    for setting, (mine, theirs) in differing.items():
        about = HParams.about(setting)
        rows.append((setting, str(mine), str(theirs), about.unit, about.help))
    return _table(rows)


def _problem(name: str) -> str:
    problem = catalogue.problem(name)
    card = _text(inspect.getdoc(type(problem.base)))
    settings = problem.prepare_settings
    rows = [
        ("splits", ", ".join(problem.splits)),
        ("files", f"{problem.file_prefix}-*"),
    ]
    if problem.was_reversed:
        rows.append(("reversed", f"inputs and targets of {problem.base.name} swapped"))
    if problem.vocabulary.kind == "symbols":
        rows.append(("symbols", " ".join(problem.vocabulary.symbols)))
    elif problem.vocabulary.kind == "own":
        rows.append(("vocabulary", "made by the problem"))
    else:
        sharing = (
            "shared by both sides" if settings.shared_vocabulary else "one per side"
        )
        if problem.vocabulary.kind == "subwords_to_symbols":
            sharing = "for the inputs; symbols for the targets"
        vocabulary = f"{settings.vocab_size} subwords, {settings.model_type}, {sharing}"
        rows.append(("vocabulary", vocabulary))
    longest = f"{settings.max_pair_length} subwords per side, including EOS"
    rows.append(("max_pair_length", longest))
    if problem.decode_defaults:
        own = problem.decode_defaults.items()
        rows.append(("decoding", ", ".join(f"{name}={value}" for name, value in own)))
    rows.append(("watched score", problem.metric))
    return "\n\n".join((f"problem {name}", card, _table(rows)))


def _model(name: str) -> str:
    return _entry("model", registry.models, f"t2t train --model {name}", name)


def _attention(name: str) -> str:
    used_by = f"t2t train --hparams self_attention_type={name}"
    return _entry("attention", registry.attentions, used_by, name)


def _entry(kind: str, registered: registry.Registry, used_by: str, name: str) -> str:
    entry = registered.entry(name)
    rows = [("defined in", entry.module), ("used by", used_by)]
    return "\n\n".join((f"{kind} {name}", entry.summary, _table(rows)))


def _text(docstring: str | None) -> str:
    return _table([[line] for line in (docstring or "").splitlines()])


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(table_lines(rows))
