"""`t2t-bleu` and `t2t-translate-all`: the quality of every checkpoint.

Source: tensor2tensor `bin/t2t_bleu.py`, `utils/bleu_hook.py` (whose score is
sacreBLEU's with the tokenizer `intl`, cased and lower-cased) and
`bin/t2t_translate_all.py`. Importing this imports no TensorFlow.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU

from t2t_repro.cli.main import run_command
from t2t_repro.cli.streams import read_input
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.tensor2tensor.command_flags import given_flags, min_steps
from t2t_repro.features.tensor2tensor.command_line import Translation
from t2t_repro.files import atomic_file
from t2t_repro.text.lines import check_same_length
from t2t_repro.training.checkpoint_paths import all_checkpoints, step_of

VARIANTS = {"both": ("uncased", "cased"), "uncased": ("uncased",), "cased": ("cased",)}
_STEP = re.compile(r".*-(\d+)")


def run_bleu(arguments: Sequence[str]) -> int:
    """Print BLEU in tensor2tensor's format."""
    given = given_flags("t2t-bleu", arguments)
    variants = _variants(given)
    translation, folder = given.get("translation"), given.get("translations_dir")
    if bool(translation) == bool(folder):
        raise UsageError("expected either --translation or --translations_dir.")
    if not given.get("reference"):
        raise UsageError("received no --reference, expected a file.")
    references = read_input(given["reference"])
    _print_command(given["reference"], translation or f"{folder}/FILE", variants)
    if translation:
        for name, score in scores(read_input(translation), references, variants):
            print(f"{name} = {score:6.2f}")
        return 0
    _score_folder(Path(folder or ""), references, variants, given)
    return 0


def scores(
    hypotheses: Sequence[str], references: Sequence[str], variants: Sequence[str]
) -> list[tuple[str, float]]:
    """Return tensor2tensor's BLEU, 0 to 100, by the name that it prints.

    Args:
        hypotheses: Untokenized translations.
        references: One untokenized reference per translation.
        variants: "uncased", "cased" or both.

    Raises:
        UserError: If the numbers of sentences differ, or are zero.
    """
    check_same_length(hypotheses, references)
    if not hypotheses:
        raise UserError("received no translations, expected at least one line.")
    return [
        (f"BLEU_{variant}", _bleu(hypotheses, references, variant == "uncased"))
        for variant in variants
    ]


def _bleu(hypotheses: Sequence[str], references: Sequence[str], lower: bool) -> float:
    metric = BLEU(tokenize="intl", lowercase=lower)
    return metric.corpus_score(list(hypotheses), [list(references)]).score


def _variants(given: Mapping[str, str]) -> tuple[str, ...]:
    variant = given.get("bleu_variant", "both")
    if variant not in VARIANTS:
        raise UsageError(
            f"--bleu_variant={variant}: expected one of {', '.join(VARIANTS)}."
        )
    return VARIANTS[variant]


def _print_command(reference: str, translation: str, variants: Sequence[str]) -> None:
    """Print a command of sacreBLEU that computes the same."""
    command = ["sacrebleu", reference, "--input", translation, "--tokenize", "intl"]
    lower = ["--lowercase"] if variants[0] == "uncased" else []
    remark = f"  # t2t-bleu: BLEU_{variants[0]}"
    if len(variants) > 1:
        remark += "; BLEU_cased without --lowercase"
    print(shlex.join([*command, *lower]) + remark, file=sys.stderr)


def _score_folder(
    folder: Path,
    references: Sequence[str],
    variants: Sequence[str],
    given: Mapping[str, str],
) -> None:
    """Score every file that is named after a step, in the order of steps."""
    paths = numbered_files(folder, min_steps(given))
    translations = {path: read_input(str(path)) for _, path in paths}
    for path, lines in translations.items():
        if len(lines) != len(references):
            raise UserError(
                f"received {len(lines)} translations in {path} and {len(references)} "
                "references, expected one reference per translation."
            )
    found = []
    for step, path in paths:
        named = scores(translations[path], references, variants)
        found.append((step, path.stat().st_mtime, named))
        for name, score in named:
            print(f"{path}: {name} = {score:6.2f}")
    if given.get("event_dir"):
        _write_events(Path(given["event_dir"]), found, given.get("tag_suffix", ""))


def numbered_files(folder: Path, min_steps: int) -> list[tuple[int, Path]]:
    """Return the files named `<anything>-<step>` by step.

    Raises:
        UserError: If no file has such a name.
    """
    if not folder.is_dir():
        raise UserError(f"received {folder}, expected a folder of translations.")
    matches = ((_STEP.fullmatch(path.name), path) for path in folder.iterdir())
    found = sorted(
        (int(match[1]), path)
        for match, path in matches
        if match and path.is_file() and int(match[1]) >= min_steps
    )
    if not found:
        raise UserError(
            f"{folder} has no file named PROBLEM-STEP from step {min_steps} on: "
            "t2t-translate-all writes them."
        )
    return found


def _write_events(
    folder: Path,
    found: Sequence[tuple[int, float, Sequence[tuple[str, float]]]],
    tag_suffix: str,
) -> None:
    """Write the scores for TensorBoard, at the times of the translations."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    folder.mkdir(parents=True, exist_ok=True)
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
    with atomic_file(folder / name) as file:
        writer = RecordWriter(file)
        begun = found[0][1]
        writer.write(
            Event(wall_time=begun, file_version="brain.Event:2").SerializeToString()
        )
        for step, written_at, named in found:
            values = [
                Summary.Value(tag=name + tag_suffix, simple_value=score)
                for name, score in named
            ]
            event = Event(
                wall_time=written_at, step=step, summary=Summary(value=values)
            )
            writer.write(event.SerializeToString())


_DEFAULT_FOLDER = "translations"


def run_translate_all(arguments: Sequence[str]) -> int:
    """Run `t2t decode` for every checkpoint that has no translation yet."""
    given = given_flags("t2t-translate-all", arguments)
    for name in ("model_dir", "source"):
        if not given.get(name):
            raise UsageError(f"received no --{name}, expected one.")
    folder = Path(given.get("translations_dir") or _DEFAULT_FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    # TensorFlow warns that the search is traced again, as each checkpoint needs.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    for checkpoint, target in _tasks(given, folder):
        if target.exists():
            print(f"{target} exists already", file=sys.stderr)
            continue
        decoding = _decoding(given, checkpoint, target)
        print(f"{decoding.line}  # t2t-translate-all", file=sys.stderr)
        code = run_command(decoding.arguments)
        if code:
            return code
        # `t2t-bleu` plots a score at the time of its checkpoint, as in tensor2tensor.
        written_at = Path(f"{checkpoint}.index").stat().st_mtime
        os.utime(target, (written_at, written_at))
    return 0


def _tasks(given: Mapping[str, str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each checkpoint with the file of its translations.

    Raises:
        UserError: If there is no checkpoint.
    """
    least = min_steps(given)
    checkpoints = [
        path for path in all_checkpoints(given["model_dir"]) if step_of(path) >= least
    ]
    if not checkpoints:
        raise UserError(
            f"{given['model_dir']} has no checkpoint from step {least} on: `t2t train` "
            "writes them."
        )
    for path in checkpoints:
        yield path, folder / f"{given.get('problem', 'translation')}-{step_of(path)}"


def _decoding(given: Mapping[str, str], checkpoint: str, target: Path) -> Translation:
    """Return the `t2t decode` command for one checkpoint."""
    flags = {
        "output_dir": given["model_dir"],
        "checkpoint_path": checkpoint,
        "decode_from_file": given["source"],
        "decode_to_file": str(target),
        "decode_hparams": f"beam_size={given.get('beam_size', 4)},"
        f"alpha={given.get('alpha', 0.6)}",
    }
    if given.get("t2t_usr_dir"):
        flags["t2t_usr_dir"] = given["t2t_usr_dir"]
    return Translation("decode", flags)
