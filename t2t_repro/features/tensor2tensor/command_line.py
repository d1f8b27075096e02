"""Command lines of `t2t` from the settings of tensor2tensor."""

from __future__ import annotations

import glob
import importlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from t2t_repro import registry
from t2t_repro.cli.loading import load_catalogue
from t2t_repro.cli.main import COMMANDS, CommandParser
from t2t_repro.cli.streams import STANDARD_STREAM
from t2t_repro.data.request import PairFiles
from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor.old_names import (
    ANY_PROBLEM,
    DECODE_HPARAMS,
    HPARAM_VALUES,
    HPARAMS,
    OTHER_PROBLEMS,
    PROBLEMS,
    SETS,
    OldHParam,
    OldProblem,
)
from t2t_repro.files import atomic_write, matching
from t2t_repro.settings.decode_hparams import DecodeHParams

# Flags that only a training run needs: the folder of its run remembers them.
OF_THE_RUN = ("problem", "problems", "model", "hparams_set", "hparams", "data_dir")
REMEMBERED = "not needed: the run in --output_dir remembers it"
# Commands that read a run, whose folder describes the data and the model.
_OF_A_RUN = ("decode", "evaluate", "score", "export", "average")


@dataclass
class Translation:
    """A command line of `t2t`, and answers about the flags that it leaves out.

    Attributes:
        command: Name of the `t2t` command, with positional arguments.
        flags: Value by name of a flag of the command.
        answers: Flags of tensor2tensor by the answer that they get.
        notes: Further lines, such as how a problem differs.
    """

    command: str
    flags: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def accepted(self) -> frozenset[str]:
        """Names of the flags of the `t2t` command."""
        parser = CommandParser()
        module = COMMANDS[self.command.split()[0]].module
        importlib.import_module(module).add_flags(parser)
        return frozenset(flag.removeprefix("--") for flag in parser.flags())

    @property
    def arguments(self) -> list[str]:
        """Arguments of `t2t`."""
        arguments = self.command.split()
        for name, value in self.flags.items():
            arguments += [f"--{name}", value]
        return arguments

    @property
    def line(self) -> str:
        """The command line, to be pasted into a shell."""
        return shlex.join(["t2t", *self.arguments])

    def answer(self, written: str, answer: str) -> None:
        """Add a flag that is left out, as the user wrote it."""
        self.answers.setdefault(answer, []).append(written)

    def answer_unused(self, name: str, value: str, answer: str = "") -> None:
        """Add a flag that the `t2t` command does not need.

        Args:
            name: Name of the flag.
            value: Value of the flag.
            answer: Its replacement, if any.
        """
        remembered = name in OF_THE_RUN and self.command in _OF_A_RUN
        unused = answer or f"not needed: `t2t {self.command}` does not use it"
        self.answer(f"--{name}={value}", REMEMBERED if remembered else unused)

    def lines(self) -> list[str]:
        """Return the answers and notes, one line each."""
        answers = [
            f"{', '.join(flags)}: {text}" for text, flags in self.answers.items()
        ]
        return answers + self.notes


def translated(
    result: Translation,
    flag: str,
    text: str,
    old: Mapping[str, OldHParam],
    values: Mapping[tuple[str, str], str],
) -> dict[str, str]:
    """Return the overrides that exist here, and add an answer for each of the others.

    Names that neither tensor2tensor nor this project has are kept, for the `t2t`
    command to report them.

    Args:
        result: Gets the answers.
        flag: Name of the flag, for messages.
        text: Overrides as the user wrote them.
        old: Names of tensor2tensor that do not exist here.
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


# Flags of version 1.0, before --decode_hparams.
_OLD_FLAGS = {
    "decode_beam_size": "beam_size",
    "decode_alpha": "alpha",
    "decode_extra_length": "extra_length",
    "decode_return_beams": "return_beams",
}
# tensor2tensor has these among the hparams of the model.
_SAMPLING = ("sampling_method", "sampling_temp", "sampling_keep_top_k")
# Settings of the search that tensor2tensor puts into the name of the output.
_NAMED = ("beam_size", "alpha")


def has_input(given: Mapping[str, str]) -> bool:
    """Return whether the flags ask for the translation of a file or of lines typed."""
    return (
        bool(given.get("decode_from_file")) or given.get("decode_interactive") == "true"
    )


def with_sampling_moved(
    result: Translation, given: Mapping[str, str]
) -> dict[str, str]:
    """Move the settings of sampling from --hparams to --decode_hparams.

    Source: tensor2tensor `utils/t2t_model.py: infer`. Only its greedy search, with a
    beam of 1, draws at random; its beam search ignores these settings.

    Args:
        result: Gets a note.
        given: Value by name of a flag of tensor2tensor.
    """
    pieces = [piece.strip() for piece in given.get("hparams", "").split(",")]
    moved = [piece for piece in pieces if piece.partition("=")[0] in _SAMPLING]
    if not moved:
        return dict(given)
    others = ",".join(piece for piece in pieces if piece not in moved)
    decoding = filter(None, (given.get("decode_hparams"), *moved))
    written = f"--hparams {','.join(moved)}"
    if _beam_size(given) != "1":
        result.notes.append(
            f"{written}: not needed: with more than one beam, tensor2tensor ignores it"
        )
        return {**given, "hparams": others}
    result.notes.append(f"{written}: now part of --decode_hparams")
    return {**given, "hparams": others, "decode_hparams": ",".join(decoding)}


def _beam_size(given: Mapping[str, str]) -> str:
    beam_size = given.get("decode_beam_size", "4")
    for piece in given.get("decode_hparams", "").split(","):
        name, _, value = piece.partition("=")
        beam_size = value.strip() if name.strip() == "beam_size" else beam_size
    return beam_size


def describe_search(result: Translation, given: Mapping[str, str]) -> None:
    """Add the run, the files and the settings of a search.

    Raises:
        UsageError: If a setting has no equivalent.
    """
    _name_run(result, given)
    settings = add_settings(result, given)
    if result.command == "decode":
        _name_files(result, given, settings)
    elif result.command == "evaluate":
        is_test = given.get("eval_use_test_set") == "true"
        result.flags["split"] = "test" if is_test else "dev"
    elif result.command == "export" and "output_dir" in result.flags:
        result.flags.setdefault("export_dir", f"{result.flags['output_dir']}/export")


def _name_run(result: Translation, given: Mapping[str, str]) -> None:
    """Add the run that holds the checkpoint if only the checkpoint is given."""
    checkpoint = given.get("checkpoint_path")
    if checkpoint and "output_dir" not in result.flags:
        result.flags["output_dir"] = str(Path(checkpoint).parent)


def add_settings(result: Translation, given: Mapping[str, str]) -> dict[str, str]:
    """Add the settings of the search that the command reads, and return them.

    Raises:
        UsageError: If a setting has no equivalent.
    """
    old = [f"{new}={given[name]}" for name, new in _OLD_FLAGS.items() if name in given]
    text = ",".join([*old, given.get("decode_hparams", "")])
    settings = translated(result, "decode_hparams", text, DECODE_HPARAMS, {})
    for name in DecodeHParams.names():
        readers = DecodeHParams.about(name).read_by
        if name in settings and result.command not in readers:
            result.answer(
                f"--decode_hparams {name}={settings.pop(name)}",
                f"not needed: `t2t {result.command}` does not read it",
            )
    if settings:
        result.flags["decode_hparams"] = joined(settings)
    return settings


def _name_files(
    result: Translation, given: Mapping[str, str], settings: Mapping[str, str]
) -> None:
    """Name the output as tensor2tensor does; without an input, name no files."""
    source = given.get("decode_from_file")
    if not source or given.get("decode_interactive") == "true":
        for name in ("decode_from_file", "decode_to_file"):
            result.flags.pop(name, None)
        return
    if "decode_to_file" not in result.flags and source != STANDARD_STREAM:
        result.flags["decode_to_file"] = output_name(source, given, settings)


def output_name(
    source: str, given: Mapping[str, str], settings: Mapping[str, str]
) -> str:
    """Return the name that tensor2tensor gives to the translations of a file.

    Source: tensor2tensor `utils/decoding.py: _decode_filename`.
    """
    problem = given.get("problem") or given.get("problems")
    described = (given.get("model"), given.get("hparams_set"), problem)
    defaults = DecodeHParams().values()
    beam, alpha = (settings.get(name, str(defaults[name])) for name in _NAMED)
    parts = (
        source,
        *filter(None, described),
        f"beam{beam}",
        f"alpha{alpha}",
        "decodes",
    )
    return ".".join(parts)


TRAIN_STEPS = "250000"  # tensor2tensor's default
_SEVERAL = ("*", ",", "-")


def name_problem(result: Translation, given: Mapping[str, str]) -> None:
    """Add the problem under its name here, or the nearest one.

    Raises:
        UsageError: If no problem here has the same text.
    """
    flag = next((name for name in ("problem", "problems") if given.get(name)), "")
    if not flag:
        return
    problem = given[flag]
    written = f"--{flag}={problem}"
    if any(mark in problem for mark in _SEVERAL):
        raise UsageError(f"{written}: expected one problem; run the command for each.")
    base = problem.removesuffix(registry.REVERSED_SUFFIX)
    suffix = problem[len(base) :]
    load_catalogue(given.get("t2t_usr_dir") or None)
    registry.problems.check_not_refused(base)
    if base in registry.problems:
        result.flags["problem"] = problem
        return
    data_dir = given.get("data_dir", "")
    if data_dir and matching(Path(data_dir), f"{glob.escape(base)}-train-*-of-*"):
        result.flags["problem"] = ANY_PROBLEM + suffix
        result.notes.append(f"{written}: the data in {data_dir}, as {ANY_PROBLEM}")
        return
    old = PROBLEMS.get(base) or _other_problem(base)
    if not old.name:
        if old.answer:
            raise UsageError(f"{written}: it is not here; {old.answer}.")
        result.flags["problem"] = problem
        return
    result.flags["problem"] = old.name + suffix
    if old.vocab_size is not None:
        result.flags["vocab_size"] = str(old.vocab_size)
    difference = f" ({old.answer})" if old.answer else ""
    result.notes.append(f"{written}: here {old.name}{suffix}{difference}")


def _other_problem(problem: str) -> OldProblem:
    beginnings = (b for b in OTHER_PROBLEMS if problem.startswith(b))
    answer = OTHER_PROBLEMS.get(next(beginnings, ""), "")
    return OldProblem(answer=answer)


def describe_training(result: Translation, given: Mapping[str, str]) -> None:
    """Add the set, the hparams and the steps of a training run.

    Raises:
        UsageError: If the set or an hparam has no equivalent.
    """
    result.flags.setdefault("train_steps", TRAIN_STEPS)
    if given.get("save_checkpoints_secs", "0") not in ("", "0"):
        result.flags.pop("save_checkpoints_steps", None)
    changes = _name_set(result, given.get("hparams_set", ""))
    own = translated(
        result, "hparams", given.get("hparams", ""), HPARAMS, HPARAM_VALUES
    )
    if changes or own:
        result.flags["hparams"] = joined({**changes, **own})


def _name_set(result: Translation, name: str) -> Mapping[str, str]:
    """Add a set under its name here, and return the hparams that differ from it."""
    if not name:
        return {}
    old = SETS.get(name)
    if old is None:
        result.flags["hparams_set"] = name
        return {}
    if not old.base:
        raise UsageError(
            f"--hparams_set={name}: no set here has its values; {old.answer}."
        )
    result.flags["hparams_set"] = old.base
    if name != old.base:
        other = (
            f"; the set {name} here has others" if name in registry.hparams_sets else ""
        )
        result.notes.append(f"--hparams_set={name}: tensor2tensor's values{other}")
    return old.changes


# tensor2tensor's names for the sides of a set that it decodes.
_SOURCES, _TARGETS = ".inputs", ".targets"


def describe_scoring(result: Translation, given: Mapping[str, str]) -> None:
    """Add the files of both sides, and a note on how the scores differ."""
    scores = given.get("decode_to_file", "")
    beside = given["score_file"] if scores in ("", STANDARD_STREAM) else scores
    result.flags["source"] = beside + _SOURCES
    result.flags["target"] = beside + _TARGETS
    result.notes += [
        f"--score_file={given['score_file']}: its columns are in {beside}{_SOURCES} "
        f"and {beside}{_TARGETS}, as `cut -f1` and `cut -f2` write them",
        "`t2t score` writes log-probability, score, number of tokens; tensor2tensor's "
        "loss is -log-probability / tokens",
    ]


def write_sides(pairs: str, source: str, target: str) -> None:
    """Write the two sides of a file of pairs into separate files.

    Args:
        pairs: File with one source, TAB and target per line.
        source: File for the sources.
        target: File for the targets.

    Raises:
        UserError: If the file cannot be read, or a line has not exactly one TAB.
    """
    columns = list(PairFiles(Path(pairs)).pairs())
    for side, path in enumerate((source, target)):
        text = "".join(f"{pair[side].strip()}\n" for pair in columns)
        atomic_write(Path(path), text)
