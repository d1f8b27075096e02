"""`t2t export --format ctranslate2`."""

from __future__ import annotations

import argparse
import shlex

from t2t_repro.cli.loading import load_system
from t2t_repro.cli.streams import read_input
from t2t_repro.features.ctranslate2.command_engine import add_quantization_flag
from t2t_repro.features.ctranslate2.ctranslate2_system import check_exportable
from t2t_repro.features.ctranslate2.ctranslate2_translator import check_followed
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text_tables import quantity

DESCRIPTION = (
    "Or write it for CTranslate2, a fast engine for CPUs, after comparing both on "
    "sentences; beyond a tolerance, nothing is written."
)
HELP = "pip install ctranslate2"
FLAGS = ("quantization", "parity_sentences")
_NEEDS = "--format ctranslate2"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this format."""
    add_quantization_flag(parser, _NEEDS)
    parser.add_argument(
        "--parity_sentences",
        metavar="FILE",
        help="sources to compare the export and the model with, one per line (default: "
        f"the first ones of the dev text); needs {_NEEDS}",
    )


def run(args: argparse.Namespace, hparams: DecodeHParams) -> None:
    """Export, and print the comparison and how to use the export."""
    check_followed(hparams)  # the library checks it, too, after loading the system
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
        "with ctranslate2;\n"
        "docs/serving.md has one for vocabularies of SentencePiece."
    )
