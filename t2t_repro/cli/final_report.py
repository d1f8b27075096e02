"""The end of `t2t train`: averaged weights, a score, samples, and what to type next."""

from __future__ import annotations

import argparse
import logging

from t2t_repro.cli.average import average_last
from t2t_repro.cli.evaluate import reference_split
from t2t_repro.cli.system import load_system
from t2t_repro.data.manifest import Manifest
from t2t_repro.hyperparameters import DecodeHParams
from t2t_repro.metrics.translation import TranslationScores, score_translations

logger = logging.getLogger(__name__)

SAMPLES = 3


def write_final_report(args: argparse.Namespace) -> None:
    """Average, translate the test split (or dev), print scores and samples.

    Args:
        args: The flags of `t2t train`.
    """
    which = "latest"
    if args.average_last > 1:
        average_last(args.output_dir, args.average_last, args.t2t_usr_dir)
        which = "averaged"
    system = load_system(
        argparse.Namespace(
            output_dir=args.output_dir,
            checkpoint_path=which,
            t2t_usr_dir=args.t2t_usr_dir,
        )
    )
    splits = Manifest.load_existing(args.data_dir, system.problem).splits
    split = next((name for name in ("test", "dev") if name in splits), None)
    if split is None:
        print(f"trained; no dev or test split to score. {_next_commands(args, which)}")
        return
    sources, references = reference_split(args.data_dir, system.problem, split)
    translator = system.translator(DecodeHParams())
    hypotheses = [best[0].text for best in translator.translate(sources)]
    scores = score_translations(hypotheses, references)
    print(_scores_text(scores, split))
    print(_samples_text(sources, hypotheses, references))
    print(_next_commands(args, which))


def _scores_text(scores: TranslationScores, split: str) -> str:
    return (
        f"BLEU on {split} ({scores.sentences} sentences, beam 4, alpha 0.6): "
        f"{scores.bleu.value:.2f}  {scores.bleu.signature}\n"
        f"chrF: {scores.chrf.value:.2f}  {scores.chrf.signature}"
    )


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


def _next_commands(args: argparse.Namespace, which: str) -> str:
    run = f"--output_dir {args.output_dir} --checkpoint_path {which}"
    return (
        "\nNext:\n"
        f"  t2t decode {run} --decode_from_file - --decode_to_file -\n"
        f"  t2t evaluate {run}\n"
        f"  t2t export {run} --export_dir {args.output_dir}/export\n"
        f"  tensorboard --logdir {args.output_dir}"
    )
