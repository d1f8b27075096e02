"""`t2t import --from tensor2tensor`."""

from __future__ import annotations

import argparse

from t2t_repro.cli.loading import import_tensorflow, load_catalogue
from t2t_repro.features.tensor2tensor.old_checkpoint_files import find_old_checkpoint

DESCRIPTION = (
    "tensor2tensor: a Transformer of `t2t-trainer` or `t2t-avg-all`, with its "
    "vocabulary. Its logits are compared before anything is written."
)
HELP = "folder of a model, or the path of one checkpoint"
# Metavariable and help of each flag of text
_TEXTS = {
    "checkpoint_path": ("PATH", "checkpoint to use instead of the newest"),
    "data_dir": (
        "DIR",
        "folder of its data, with vocab.* (default: the folder that its "
        "hparams.json names, or MODEL)",
    ),
    "t2t_usr_dir": ("DIR", "package with its problem and its hparams set"),
    "problem": ("NAME", "its problem (default: the one in its flags.txt)"),
    "hparams_set": (
        "NAME",
        "its set, if there is no hparams.json (default: the one in its flags.txt)",
    ),
    "hparams": ("NAME=VALUE,...", "its changes to them, in tensor2tensor's names"),
    "source_vocab": (
        "FILE",
        "its vocabulary; of the inputs, if --target_vocab is given",
    ),
    "target_vocab": ("FILE", "its vocabulary of the targets"),
}
FLAGS = (*_TEXTS, "target_space_id")
_NEEDS = "; needs --from tensor2tensor"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this origin."""
    for name, (metavar, text) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=text + _NEEDS)
    parser.add_argument(
        "--target_space_id",
        metavar="ROW",
        type=int,
        help="row of its target spaces that was trained (default: found, or 0)"
        + _NEEDS,
    )


def run(args: argparse.Namespace) -> None:
    """Import, and print what was found."""
    find_old_checkpoint(args.checkpoint_path or args.model)  # fails at once
    import_tensorflow()
    load_catalogue(args.t2t_usr_dir)
    from t2t_repro.features.tensor2tensor.checkpoint_import import import_checkpoint
    from t2t_repro.features.tensor2tensor.import_report import ImportRequest

    given = {name: getattr(args, name) for name in FLAGS}
    given["hparams"] = given["hparams"] or ""
    request = ImportRequest(model=args.model, **given)
    _, report = import_checkpoint(request, args.output_dir)
    for line in report.lines():
        print(line)
