"""`t2t export`: write a trained system for other programs."""

from __future__ import annotations

import argparse
import shlex

from t2t_repro.cli.engine import add_quantization_flag, check_needed
from t2t_repro.cli.flags import (
    add_decode_hparams_flag,
    add_system_flags,
    number_in_range,
)
from t2t_repro.cli.framework import load_system
from t2t_repro.cli.streams import read_input
from t2t_repro.decoding.ctranslate2_engine import check_followed
from t2t_repro.errors import UsageError
from t2t_repro.export.ctranslate2_folder import check_exportable
from t2t_repro.export.limits import MAX_SOURCE_TOKENS, check_saved_model_folder
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text_tables import quantity

DESCRIPTION = (
    "Write the trained system as a SavedModel: strings in, translations and scores "
    "out. Or write it for CTranslate2, a fast engine for CPUs, after comparing both on "
    "sentences; beyond a tolerance, nothing is written."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, ensembles=True)
    parser.add_argument(
        "--export_dir", metavar="DIR", required=True, help="folder to create"
    )
    parser.add_argument(
        "--format",
        choices=("saved_model", "ctranslate2"),
        default="saved_model",
        help="format of the export (default: saved_model); ctranslate2 needs pip "
        "install ctranslate2",
    )
    needs = "--format ctranslate2"
    add_quantization_flag(parser, needs)
    parser.add_argument(
        "--parity_sentences",
        metavar="FILE",
        help="sources to compare the export and the model with, one per line (default: "
        f"the first ones of the dev text); needs {needs}",
    )
    parser.add_argument(
        "--max_source_tokens",
        metavar="N",
        type=number_in_range(1, int),
        help="tokens of a source to translate; the rest is cut, and the output "
        f"`truncated` says so (default: {MAX_SOURCE_TOKENS})",
    )
    add_decode_hparams_flag(parser, "export")


def run(args: argparse.Namespace) -> int:
    """Export, and print how to use the result."""
    hparams = DecodeHParams().parse_for("export", args.decode_hparams)
    check_needed(args, "format", ("quantization", "parity_sentences"))
    if args.format == "ctranslate2":
        if args.max_source_tokens is not None:
            raise UsageError(
                "received --max_source_tokens with --format ctranslate2, where it has "
                "no effect: leave it out."
            )
        check_followed(hparams)  # the library checks it, too, after loading the system
        return _export_ctranslate2(args, hparams)
    check_saved_model_folder(args.export_dir)
    system = load_system(args, hparams, ensembles=True)
    limit = args.max_source_tokens or MAX_SOURCE_TOKENS
    system.export(args.export_dir, hparams, limit)
    print(
        f"{args.export_dir}\n"
        "Use it in any program with tensorflow and tensorflow_text:\n"
        "  import tensorflow as tf, tensorflow_text\n"
        f"  translate = tf.saved_model.load({args.export_dir!r})"
        '.signatures["serving_default"]\n'
        '  print(translate(tf.constant(["..."]))["outputs"])'
    )
    return 0


def _export_ctranslate2(args: argparse.Namespace, hparams: DecodeHParams) -> int:
    quantization = args.quantization or "float32"
    described = Run.load_existing(args.output_dir)
    check_exportable(described.model, described.hparams, args.export_dir, quantization)
    sentences = None
    if args.parity_sentences is not None:
        sentences = read_input(args.parity_sentences)
    system = load_system(args, hparams)
    parity = system.export_ctranslate2(
        args.export_dir, hparams, quantization=quantization, sentences=sentences
    )
    print(args.export_dir)
    print(
        f"Compared with the trained model on {quantity(parity.sentences, 'sentence')}:"
    )
    for line in parity.lines():
        print(f"  {line}")
    print(
        f"Use it with `t2t decode --output_dir {shlex.quote(args.output_dir)} --engine "
        f"ctranslate2 --export_dir {shlex.quote(args.export_dir)}`, or in any program "
        "with ctranslate2 and\n"
        "sentencepiece; docs/serving_ctranslate2.md has such a program."
    )
    return 0
