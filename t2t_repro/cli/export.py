"""`t2t export`: write a trained system for other programs."""

from __future__ import annotations

import argparse

from t2t_repro.cli.flags import (
    add_decode_hparams_flag,
    add_system_flags,
    number_in_range,
)
from t2t_repro.cli.framework import load_system
from t2t_repro.export.limits import MAX_SOURCE_TOKENS
from t2t_repro.settings.decode_hparams import DecodeHParams

DESCRIPTION = (
    "Write the trained system as a SavedModel: strings in, translations and scores out."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser)
    parser.add_argument(
        "--export_dir", metavar="DIR", required=True, help="folder to create"
    )
    parser.add_argument(
        "--format",
        choices=("saved_model",),
        default="saved_model",
        help="format of the export (default: saved_model)",
    )
    parser.add_argument(
        "--max_source_tokens",
        metavar="N",
        type=number_in_range(1, int),
        default=MAX_SOURCE_TOKENS,
        help="tokens of a source to translate; the rest is cut, and the output "
        f"`truncated` says so (default: {MAX_SOURCE_TOKENS})",
    )
    add_decode_hparams_flag(parser, "export")


def run(args: argparse.Namespace) -> int:
    """Export, and print how to use the result."""
    hparams = DecodeHParams().parse_for("export", args.decode_hparams)
    system = load_system(args, hparams)
    system.export(args.export_dir, hparams, args.max_source_tokens)
    print(
        f"{args.export_dir}\n"
        "Use it in any program with tensorflow and tensorflow_text:\n"
        "  import tensorflow as tf, tensorflow_text\n"
        f"  translate = tf.saved_model.load({args.export_dir!r})"
        '.signatures["serving_default"]\n'
        '  print(translate(tf.constant(["..."]))["outputs"])'
    )
    return 0
