"""The end of `t2t train`: averaged weights, a score, samples, and what to type next."""

from __future__ import annotations

import argparse
import logging
import shlex
from collections.abc import Collection

from t2t_repro.cli.average import average_last
from t2t_repro.cli.evaluate import reference_split
from t2t_repro.cli.system import System, load_system
from t2t_repro.settings.decode_hparams import DecodeHParams

logger = logging.getLogger(__name__)

SAMPLES = 3


def write_final_report(args: argparse.Namespace, splits: Collection[str]) -> None:
    """Average, translate the test split (or dev), print scores and samples.

    Args:
        args: The flags of `t2t train`.
        splits: Of the prepared data.
    """
    which = "latest"
    if args.average_last > 1:
        average_last(args.output_dir, args.average_last, args.t2t_usr_dir)
        which = "averaged"
    split = next((name for name in ("test", "dev") if name in splits), None)
    if split is None:
        print("trained; no dev or test split to score")
    elif not args.no_final_score:
        system = load_system(
            argparse.Namespace(
                output_dir=args.output_dir,
                checkpoint_path=which,
                t2t_usr_dir=args.t2t_usr_dir,
            )
        )
        _print_scores(args.data_dir, system, split)
    print(_next_commands(args.output_dir, which, split))


def _print_scores(data_dir: str, system: System, split: str) -> None:
    """Translate a split, and print its scores and a few translations."""
    sources, references = reference_split(data_dir, system.problem, split)
    hparams = system.with_problem_defaults(DecodeHParams())
    translator = system.translator(hparams)
    hypotheses = [best[0].text for best in translator.translate(sources)]
    scores = system.problem.score(hypotheses, references)
    how = (
        f"{split} ({scores.sentences} sentences, beam {hparams.beam_size}, alpha "
        f"{hparams.alpha})"
    )
    print("\n".join(scores.lines(how)))
    print(_samples_text(sources, hypotheses, references))


def _samples_text(
    sources: list[str], hypotheses: list[str], references: list[str]
) -> str:
    """Show a few translations, spread evenly over the split."""
    lines = []
    for number in range(0, len(sources), max(len(sources) // SAMPLES, 1))[:SAMPLES]:
        lines += [
            f"\nsource       {sources[number]}",
            f"translation  {hypotheses[number]}",
            f"reference    {references[number]}",
        ]
    return "\n".join(lines)


def _next_commands(output_dir: str, which: str, split: str | None) -> str:
    folder = shlex.quote(output_dir)
    run = f"--output_dir {folder} --checkpoint_path {which}"
    lines = [
        f"t2t decode {run} --decode_from_file - --decode_to_file -",
        f"t2t evaluate {run} --split {split}" if split else "",
        f"t2t export {run} --export_dir {shlex.quote(f'{output_dir}/export')}",
        f"tensorboard --logdir {folder}",
    ]
    return "\n".join(["\nNext:", *(f"  {line}" for line in lines if line)])
