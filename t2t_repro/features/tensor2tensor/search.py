"""Translate the flags of a search: `t2t-decoder`, `t2t-exporter`, evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from t2t_repro.cli.streams import STANDARD_STREAM
from t2t_repro.features.tensor2tensor.hparams import DECODE_HPARAMS
from t2t_repro.features.tensor2tensor.overrides import joined, translated
from t2t_repro.features.tensor2tensor.translation import Translation
from t2t_repro.settings.decode_hparams import DecodeHParams

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


def describe(result: Translation, given: Mapping[str, str]) -> None:
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
    """Find the run beside the checkpoint if only that is given."""
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
    """Name the input and, as tensor2tensor does, the output."""
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
