"""`t2t export --format saved_model`."""

from __future__ import annotations

import argparse

from t2t_repro.cli.flags import number_in_range
from t2t_repro.cli.loading import load_system
from t2t_repro.features.saved_model.saved_model_export import (
    MAX_SOURCE_TOKENS,
    check_saved_model_folder,
)
from t2t_repro.settings.decode_hparams import DecodeHParams

DESCRIPTION = (
    "Write the trained system as a SavedModel: strings in, translations and scores out."
)
HELP = ""
FLAGS = ("max_source_tokens",)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this format."""
    parser.add_argument(
        "--max_source_tokens",
        metavar="N",
        type=number_in_range(1, int),
        help="tokens of a source to translate; the rest is cut, and the output "
        f"`truncated` says so (default: {MAX_SOURCE_TOKENS})",
    )


def run(args: argparse.Namespace, hparams: DecodeHParams) -> None:
    """Export, and print how to use the SavedModel."""
    check_saved_model_folder(args.export_dir)
    system = load_system(args, hparams, ensembles=True)
    system.export(args.export_dir, hparams, args.max_source_tokens)
    print(
        f"{args.export_dir}\n"
        "Use it in any program with tensorflow and tensorflow_text:\n"
        "  import tensorflow as tf, tensorflow_text\n"
        f"  translate = tf.saved_model.load({args.export_dir!r})"
        '.signatures["serving_default"]\n'
        '  print(translate(tf.constant(["..."]))["outputs"])'
    )
