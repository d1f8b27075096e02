"""`t2t-translate-all`: translate a file with every checkpoint of a run.

Source: tensor2tensor `bin/t2t_translate_all.py`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from t2t_repro.cli.main import run_command
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.tensor2tensor.flags import whole_number
from t2t_repro.features.tensor2tensor.translation import Translation
from t2t_repro.features.tensor2tensor.translator import given_flags
from t2t_repro.training.checkpoint_paths import all_checkpoints, step_of

_DEFAULT_FOLDER = "translations"


def run(arguments: Sequence[str]) -> int:
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
    least = whole_number(given, "min_steps")
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
    """Return the `t2t decode` of one checkpoint."""
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
