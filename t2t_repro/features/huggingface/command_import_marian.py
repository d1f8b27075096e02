"""`t2t import --from huggingface`."""

from __future__ import annotations

import argparse
from pathlib import Path

from t2t_repro.cli.loading import import_tensorflow, load_catalogue

DESCRIPTION = "A MarianMT model of Hugging Face's Transformers, such as OPUS-MT's."
HELP = (
    "folder with config.json, model.safetensors or pytorch_model.bin, source.spm, "
    "target.spm and vocab.json"
)
FLAGS = ()


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flags."""
    del parser


def run(args: argparse.Namespace) -> None:
    """Import, and print what was found."""
    load_catalogue(None)
    import_tensorflow()
    from t2t_repro.features.huggingface.marian_config import HPARAMS_SET
    from t2t_repro.features.huggingface.marian_import import read_marian
    from t2t_repro.runs.imported_run import write_run

    imported = read_marian(args.model)
    system = write_run(imported, args.output_dir)
    h = system.run.hparams.resolved()
    sizes = {system.model.source_vocab_size, system.model.target_vocab_size}
    print(
        f"{args.output_dir}: MarianMT, {h.num_encoder_layers} + {h.num_decoder_layers} "
        f"layers of width {h.hidden_size}, "
        f"{' and '.join(f'{size:,}' for size in sorted(sizes))} entries, "
        f"{system.model.count_params():,} parameters\n"
        f"hparams: {HPARAMS_SET}, {imported.hparams or 'unchanged'}"
    )
    names = system.run.tokenizers
    paths = {side: Path(args.output_dir) / name for side, name in names.items()}
    print(
        "\nTrain on:\n"
        f"  t2t datagen --problem text_pairs --data_dir DATA --source_model "
        f"{paths['inputs']} --target_model {paths['targets']} --train_source ...\n"
        f"  t2t train --data_dir DATA --output_dir {args.output_dir} --train_steps N"
    )
