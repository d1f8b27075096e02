"""`--engine ctranslate2`: its flags, and the loading of a trained system."""

from __future__ import annotations

import argparse

from t2t_repro.cli.loading import (
    import_tensorflow,
    load_catalogue,
    several_checkpoints,
)
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ctranslate2.ctranslate2_limits import QUANTIZATIONS
from t2t_repro.features.ctranslate2.ctranslate2_system import (
    Conversion,
    CTranslate2System,
)
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams

HELP = (
    "a faster engine for CPUs (pip install ctranslate2). Its first use converts the "
    "checkpoint into OUTPUT_DIR/ctranslate2, once per checkpoint and quantization, and "
    "compares its translations with the model's"
)
FLAGS = ("quantization", "export_dir")
_NEEDS = "--engine ctranslate2"


def add_quantization_flag(parser: argparse.ArgumentParser, needs: str) -> None:
    """Add `--quantization`, which is None if it is not given.

    Args:
        parser: Parser of the command.
        needs: Flag and value without which it has no effect.
    """
    parser.add_argument(
        "--quantization",
        choices=tuple(QUANTIZATIONS),
        help=f"format of the weights (default: float32); needs {needs}",
    )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this engine."""
    add_quantization_flag(parser, _NEEDS)
    parser.add_argument(
        "--export_dir",
        metavar="DIR",
        help="translate with this folder, which t2t export --format ctranslate2 wrote, "
        f"instead of a conversion of the checkpoint; needs {_NEEDS}",
    )


def load(args: argparse.Namespace, hparams: DecodeHParams) -> CTranslate2System:
    """Load the trained system.

    Raises:
        UserError: If the run, the checkpoint or the export is missing or damaged.
        UsageError: If flags contradict each other, or a setting does not fit.
    """
    _check_single(args)
    run = Run.load_existing(args.output_dir)
    package = run.package(args.t2t_usr_dir)
    load_catalogue(package)
    if args.export_dir is None:
        system = _load_conversion(args, package, hparams)
    else:
        system = _load_export(args, package, run)
    system.problem = system.problem.with_bleu_tokenizer(run.bleu_tokenizer)
    return system


def _load_export(
    args: argparse.Namespace, package: str | None, run: Run
) -> CTranslate2System:
    """Load the folder that the flag names."""
    for flag in ("checkpoint_path", "quantization"):
        if getattr(args, flag) is not None:
            raise UsageError(
                f"received --export_dir and --{flag}: the folder has one checkpoint in "
                "one format; leave out one of the two."
            )
    system = CTranslate2System(args.export_dir, package, run.data_dir or None)
    _check_same_system(args, run, system)
    return system


def _load_conversion(
    args: argparse.Namespace, package: str | None, hparams: DecodeHParams
) -> CTranslate2System:
    """Load the conversion of the checkpoint, which is made on the first use."""
    conversion = Conversion.plan(
        args.output_dir,
        args.checkpoint_path,
        package,
        quantization=args.quantization or "float32",
        decode_hparams=hparams,
    )
    if not conversion.is_done():
        import_tensorflow()
    return CTranslate2System.from_conversion(conversion)


def _check_single(args: argparse.Namespace) -> None:
    """Refuse several checkpoints.

    Raises:
        UsageError: If there are several.
    """
    several = several_checkpoints(args.checkpoint_path)
    if several:
        raise UsageError(
            f"received {len(several)} checkpoints and --engine ctranslate2, which "
            "has no ensembles: leave out --engine, or give one checkpoint, such as "
            "the average that `t2t average` makes."
        )


def _check_same_system(
    args: argparse.Namespace, run: Run, system: CTranslate2System
) -> None:
    """Refuse an export whose problem or vocabulary is not the run's."""
    own = run.load_tokenizers(args.output_dir)
    exported = (system.source_tokenizer, system.target_tokenizer)
    pairs = zip(own, exported, strict=True)
    if run.problem != system.description.problem or any(
        a.to_bytes() != b.to_bytes() for a, b in pairs
    ):
        raise UserError(
            f"received --export_dir {args.export_dir}, expected an export of "
            f"{args.output_dir}: its problem or its vocabulary differs."
        )
