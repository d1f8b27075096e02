"""Try settings of a set on text files with an accelerator; needs TensorFlow.

Only the dev text is translated and scored. From the root of the checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.trials export --to jobs \
        --hparams_set transformer_multi30k --train_steps 23000 --vocab_size 6000 \
        --train_source train.en --train_target train.de --dev_source val.en \
        --dev_target val.de --data_dir data --decode_hparams beam_size=5,alpha=1.5 \
        --trials dropout2=layer_prepostprocess_dropout=0.2 \
        dropout3=layer_prepostprocess_dropout=0.3

    PYTHONPATH=. python -m benchmarks.accelerator.rows.trials score --jobs jobs \
        --outcomes outcomes
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.batches import export_corpus
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.found import FoundSystem, found_by_piece
from benchmarks.accelerator.rows.job import CORPUS_FILE, Job, save_jobs
from benchmarks.accelerator.rows.outcome import SYSTEMS, Outcome, load_outcomes
from benchmarks.accelerator.rows.runs import with_counters
from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.prepare import open_or_prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.split_files import PairFiles
from t2t_repro.errors import UserError
from t2t_repro.text_tables import aligned

PROBLEM = "text_pairs"


def export(args: argparse.Namespace) -> None:
    """Write a job for each trial.

    Raises:
        UserError: If the trials do not read the same batches.
    """
    catalogue.load()
    files = {
        "train": PairFiles(args.train_source, args.train_target),
        "dev": PairFiles(args.dev_source, args.dev_target),
    }
    problem = catalogue.problem(PROBLEM).with_files(files)
    data = open_or_prepare(problem, args.data_dir, {"vocab_size": args.vocab_size})
    jobs = [trial_job(trial, args, data) for trial in args.trials]
    if len({BatchPlan.for_training(job.hparams) for job in jobs}) > 1:
        raise UserError("the trials have different batches: export them apart.")
    corpus = export_corpus(
        data, jobs[0].hparams, jobs[0].seeds, args.train_steps, splits=["dev"]
    )
    args.to.mkdir(parents=True, exist_ok=True)
    corpus.save(args.to / CORPUS_FILE)
    save_jobs(jobs, args.to)
    print(f"{args.to}: {len(jobs)} jobs")


def trial_job(trial: str, args: argparse.Namespace, data: PreparedData) -> Job:
    """Return the job of a trial, given as NAME or NAME=HPARAMS."""
    name, _, changes = trial.partition("=")
    source, target = data.tokenizers()
    hparams = catalogue.hparams(args.hparams_set).parse(args.hparams)
    job = Job(
        name=name,
        corpus=CORPUS_FILE,
        hparams=hparams.parse(changes).resolved(),
        vocab_sizes=(source.vocab_size, target.vocab_size),
        seeds=tuple(range(1, args.seeds + 1)),
        train_steps=args.train_steps,
        measure_every=args.save_checkpoints_steps,
        average_last=args.average_last,
        search=args.decode_hparams,
        details={
            "data_dir": str(args.data_dir.resolve()),
            "problem": PROBLEM,
            "hparams_set": args.hparams_set,
        },
        keeps_weights=args.keep_weights,
    )
    return with_counters(job, data)


def score(args: argparse.Namespace) -> None:
    """Print the dev scores of every trial that has an outcome.

    Raises:
        UserError: If there is none.
    """
    catalogue.load()
    rows = [("trial", "seed", "weights", "dev nll", "dev BLEU")]
    for job, outcome in load_outcomes(args.jobs, args.outcomes):
        rows += _scores(job, outcome, Corpus.load(args.jobs / job.corpus))
    print("\n".join(aligned(rows, right=(1, 3, 4))))


def _scores(
    job: Job, outcome: Outcome, corpus: Corpus
) -> list[tuple[str, str, str, str, str]]:
    """Return a line per seed and system."""
    data = PreparedData.load(job.details["data_dir"], catalogue.problem(PROBLEM))
    sources, references = data.raw_text("dev")
    lines = []
    for number, seed in enumerate(job.seeds):
        for system, name in enumerate(SYSTEMS):
            found = found_by_piece(corpus, outcome.ids[system, number])
            decoder = FoundSystem(data, job.hparams.max_length, found)
            scores = decoder.evaluate(sources, references, job.decode_hparams).scores
            nll = outcome.final_nll(system)[number]
            cells = f"{nll:.3f}", f"{scores.bleu.value:.2f}"
            lines.append((job.name, str(seed), name, *cells))
    return lines


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="write jobs")
    for side in ("train_source", "train_target", "dev_source", "dev_target"):
        exporting.add_argument(f"--{side}", type=Path, required=True, help="text file")
    exporting.add_argument("--data_dir", type=Path, required=True)
    exporting.add_argument("--to", type=Path, required=True, help="folder to write")
    exporting.add_argument("--hparams_set", required=True)
    exporting.add_argument("--hparams", default="", help="changes of all trials")
    exporting.add_argument(
        "--trials", nargs="+", required=True, metavar="NAME=HPARAMS", help="changes"
    )
    exporting.add_argument("--vocab_size", type=int, required=True)
    exporting.add_argument("--train_steps", type=int, required=True)
    exporting.add_argument("--save_checkpoints_steps", type=int, default=250)
    exporting.add_argument("--average_last", type=int, default=5)
    exporting.add_argument("--seeds", type=int, default=2, help="number of seeds")
    exporting.add_argument("--decode_hparams", default="")
    exporting.add_argument(
        "--keep_weights", action="store_true", help="bring back the averaged weights"
    )
    scoring = commands.add_parser("score", help="print dev scores")
    scoring.add_argument("--jobs", type=Path, required=True, help="folder of jobs")
    scoring.add_argument("--outcomes", type=Path, required=True, help="their folder")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Export or score trials; return 0, or 1 after an error of the user."""
    args = parse_flags(arguments)
    run = export if args.command == "export" else score
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
