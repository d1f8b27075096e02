"""`t2t export`: a trained system for other programs."""

from __future__ import annotations

import argparse
import logging

from t2t_repro.cli.decode_arguments import add_decode_hparams, decode_hparams
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.system_arguments import add_system_arguments

logger = logging.getLogger(__name__)

WITHOUT = {
    "batch_size": "who calls the export decides what is in a batch.",
    "return_beams": "the signature n_best always gives all of them.",
    "write_beam_scores": "both signatures give scores.",
    "prefer_unrepaired": "the export gives what the model writes and repairs nothing.",
}


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser(
        "export",
        description=(
            "Write the trained system as a SavedModel: strings in, translations and "
            "scores out."
        ),
    )
    add_system_arguments(parser)
    parser.add_argument("--export_dir", required=True, help="folder to be made")
    parser.add_argument(
        "--format",
        choices=("saved_model",),
        default="saved_model",
        help="form of the export (default: saved_model)",
    )
    add_decode_hparams(parser, WITHOUT)


def run(args: argparse.Namespace) -> int:
    """Export, and print how to use the result."""
    hparams = decode_hparams(args, WITHOUT)
    import_tensorflow()
    from t2t_repro.cli.system import load_system
    from t2t_repro.export.saved_model import ServedTranslator, export_saved_model

    system = load_system(args)
    if not system.problem.writes_targets:
        logger.warning(
            "the export gives what the model writes, which `t2t decode` makes the "
            "outputs of %s of",
            system.problem.name,
        )
    served = ServedTranslator(
        system.model,
        system.source_tokenizer,
        system.target_tokenizer,
        system.with_problem_defaults(hparams),
        system.run.hparams.max_length,
    )
    export_saved_model(served, args.export_dir)
    print(
        f"{args.export_dir}\n"
        "Use it in any program with tensorflow and tensorflow_text:\n"
        "  import tensorflow as tf, tensorflow_text\n"
        f"  translate = tf.saved_model.load({args.export_dir!r})"
        '.signatures["serving_default"]\n'
        '  print(translate(tf.constant(["..."]))["outputs"])'
    )
    return 0
