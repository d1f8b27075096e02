"""What `t2t train` prints at the end: scores, sample translations, next commands."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.evaluate import DEFAULT_SPLIT
from t2t_repro.files import has_pattern
from t2t_repro.runs.run import group_of
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text_tables import quantity

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs import System, TrainResult

SAMPLES = 3


def print_report(
    output_dir: Path,
    results: Sequence[TrainResult],
    data: PreparedData,
    decode_hparams: DecodeHParams,
    *,
    with_scores: bool,
) -> None:
    """Print the scores of the test split, or of dev, and the next commands.

    Args:
        output_dir: Folder of the run or of the ensemble.
        results: The outcome of the run, or those of the members.
        data: Prepared data of the training run.
        decode_hparams: Settings of the search, as given.
        with_scores: Whether to translate and score.
    """
    from t2t_repro.runs import System

    split = _scored_split(data.splits)
    if split is None:
        print("trained; no dev or test split to score")
    elif with_scores:
        if len(results) > 1:
            system = group_of(output_dir).load_ensemble(output_dir)
        else:
            system = System.load(output_dir)
        _print_scores(system, data, split, decode_hparams)
    print(_next_commands(str(output_dir), split, decode_hparams))


def _scored_split(splits: Collection[str]) -> str | None:
    return next((name for name in ("test", "dev") if name in splits), None)


def _print_scores(
    system: System, data: PreparedData, split: str, decode_hparams: DecodeHParams
) -> None:
    """Translate a split, and print its scores and a few translations."""
    sources, references = data.raw_text(split)
    hparams = system.with_problem_defaults(decode_hparams)
    evaluation = system.evaluate(sources, references, hparams)
    description = (
        f"{split} ({quantity(len(sources), 'sentence')}, beam {hparams.beam_size}, "
        f"alpha {hparams.alpha})"
    )
    print("\n".join(evaluation.scores.lines(description)))
    print(_samples_text(sources, evaluation.hypotheses, references))


def _samples_text(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> str:
    """Format a few translations, spread evenly over the split."""
    lines = []
    for number in range(0, len(sources), max(len(sources) // SAMPLES, 1))[:SAMPLES]:
        lines += [
            f"\nsource       {sources[number]}",
            f"translation  {hypotheses[number]}",
            f"reference    {references[number]}",
        ]
    return "\n".join(lines)


def _next_commands(
    output_dir: str, split: str | None, decode_hparams: DecodeHParams
) -> str:
    """Return the shortest commands that use a run or an ensemble as it was scored."""
    folder = shlex.quote(output_dir)

    def of_run(command: str) -> str:
        search = _decode_hparams_flag(command, decode_hparams)
        return f"t2t {command} --output_dir {folder}{search}"

    # `t2t export` refuses some folders that training accepts.
    refused = has_pattern(Path(output_dir).absolute())
    export_dir = "DIR" if refused else shlex.quote(f"{output_dir}/export")
    lines = [
        of_run("decode"),
        f"{of_run('evaluate')}{_split_flag(split)}" if split else "",
        f"{of_run('export')} --export_dir {export_dir}",
        f"tensorboard --logdir {folder}",
    ]
    return "\n".join(["\nNext:", *(f"  {line}" for line in lines if line)])


def _split_flag(split: str) -> str:
    return "" if split == DEFAULT_SPLIT else f" --split {split}"


def _decode_hparams_flag(command: str, decode_hparams: DecodeHParams) -> str:
    """Return the flag with the given settings that a command reads, if any."""
    given = ",".join(
        f"{name}={value}"
        for name, value in decode_hparams.values().items()
        if name in decode_hparams.origins
        and command in decode_hparams.about(name).read_by
    )
    return f" {decode_hparams.flag} {shlex.quote(given)}" if given else ""
