"""`t2t export --format huggingface`."""

from __future__ import annotations

import argparse

from t2t_repro.cli.loading import load_system
from t2t_repro.errors import UsageError
from t2t_repro.features.huggingface.marian_config import check_marian
from t2t_repro.files import check_new_folder
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams

DESCRIPTION = "Or write it as a MarianMT model for Hugging Face's Transformers."
HELP = ""
FLAGS = ()


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flags."""
    del parser


def run(args: argparse.Namespace, hparams: DecodeHParams) -> None:
    """Export, and print how to use the folder."""
    if args.decode_hparams:
        raise UsageError(
            "received --decode_hparams with --format huggingface, which writes no "
            "search: give its settings to `generate`."
        )
    check_new_folder(args.export_dir)
    described = Run.load_existing(args.output_dir)
    check_marian(described.model, described.hparams)
    system = load_system(args, hparams)
    from t2t_repro.features.huggingface.marian_export import export_system

    export_system(system, args.export_dir)
    print(
        f"{args.export_dir}\n"
        "Use it with transformers, torch and sentencepiece:\n"
        "  from transformers import MarianMTModel, MarianTokenizer\n"
        f"  model = MarianMTModel.from_pretrained({args.export_dir!r})\n"
        f"  tokenizer = MarianTokenizer.from_pretrained({args.export_dir!r})\n"
        '  ids = model.generate(**tokenizer(["..."], return_tensors="pt"))\n'
        "  print(tokenizer.batch_decode(ids, skip_special_tokens=True))"
    )
