"""Score the outcomes of jobs, and write result and curve files; needs TensorFlow.

Of a run that is no row of the papers' tables, the scores on dev are printed instead.
From the root of the checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.results --jobs jobs \
        --outcomes outcomes --text_dir multi30k --data_dir data --result_dir results \
        --curve_dir curves
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.accelerator.program import run_program
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.found import FoundSystem
from benchmarks.accelerator.rows.job import (
    AVERAGED,
    CORPUS_FILE,
    SYSTEMS,
    Job,
    Outcome,
    load_outcomes,
)
from benchmarks.accelerator.rows.runs import system_folders, write_system
from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.paper_tables import find_row
from t2t_repro.features.reproduction.result_files import Result, averaged_score
from t2t_repro.features.reproduction.row_plan import Plan, plan_of
from t2t_repro.features.reproduction.row_scores import pooled_bleu, score_splits
from t2t_repro.runs import System, TranslatingSystem
from t2t_repro.text_tables import aligned

sys.path.append(str(Path(__file__).parents[3] / "docs"))
from results.curves import Curve, rounded

_MODULE = "benchmarks.accelerator.rows"


@dataclasses.dataclass(frozen=True)
class Seed:
    """A seed of a trained job.

    Attributes:
        job: The job.
        outcome: What its training left.
        number: Number of the seed, counted from 0.
        data: Prepared data of the job.
        systems: Its systems by name, of `SYSTEMS`.
    """

    job: Job
    outcome: Outcome
    number: int
    data: PreparedData
    systems: Mapping[str, TranslatingSystem]

    @property
    def plan(self) -> Plan:
        """Plan of the row's run with the seed."""
        seed = self.job.seeds[self.number]
        return plan_of(*find_row(self.job.row), self.job.scale, seed)

    def nll(self, system: str) -> float:
        """Return the nll of dev with the weights of a system."""
        return float(self.outcome.arrays[f"nll/{system}"][self.number])

    def result(self, text_dir: Path) -> Result:
        """Return the result of the row."""
        job, outcome, recipe = self.job, self.outcome, self.plan.recipe
        scores: dict[str, float] = {}
        ranked = SYSTEMS if recipe.ranks_systems else [*self.systems][:1]
        for system in ranked:
            found = score_splits(self.systems[system], self.data, recipe.splits)
            own = found.scores
            if found.signature:
                own["perplexity (dev)"] = math.exp(self.nll(system))
            if recipe.ranks_systems:
                pooled = f"BLEU ({'+'.join(recipe.splits)})"
                own[pooled] = pooled_bleu([*found.outputs.values()])
                own["nll (dev)"] = self.nll(system)
            is_first = system == ranked[0]
            scores |= {n if is_first else averaged_score(n): x for n, x in own.items()}
        return Result(
            system=str(self.plan.rows[0].system),
            scale=job.scale,
            seed=self.plan.seed,
            scores=scores,
            signature=found.signature,
            steps=job.last_step,
            seconds=round(outcome.seconds, 1),
            parameters=outcome.parameters,
            commands=commands(job.row, job.scale, job.seeds, outcome.precision),
            data=recipe.text_digests(text_dir),
            hardware=hardware(job, outcome),
            versions=outcome.versions,
        )

    def curve(self) -> Curve:
        """Return the learning curve of the row."""
        arrays, plan = self.outcome.arrays, self.plan
        return Curve(
            name=f"{plan.rows[0].system}-{plan.scale}",
            seed=plan.seed,
            problem=plan.recipe.problem,
            hparams_set=plan.recipe.hparams_set,
            settings=self.job.hparams.given(),
            data_digest=self.data.digest,
            versions=self.outcome.versions,
            steps=arrays["steps"].tolist(),
            nll=[rounded(float(x)) for x in arrays["nll"][:, self.number]],
            branches=branches(self.outcome, self.number),
            seconds=round(self.outcome.seconds, 1),
        )


def branches(outcome: Outcome, number: int) -> dict[str, list[float]]:
    """Return each weight of a branch at each step, see `Curve.branches`."""
    found = {}
    for name, values in outcome.arrays.items():
        if name.startswith("branches/"):
            _, _, stack, layer, _, kind = name.split("/")
            for branch, course in enumerate(values[:, number].T.tolist()):
                key = (stack != "encoder", layer, kind != "kappa", branch)
                place = f"{stack}/{layer}/{kind}/{branch}"
                found[key] = place, [*map(rounded, course)]
    return dict(found[key] for key in sorted(found))


def hardware(job: Job, outcome: Outcome) -> str:
    """Return a description of what a job was trained on, for result files."""
    at_once = len(job.seeds)
    seeds = f"{at_once} seeds at once" if at_once > 1 else "1 seed"
    beside = ", beside other training runs" if outcome.processes > 1 else ""
    return f"1 x {outcome.device}, {seeds}{beside}"


def commands(
    row: str, scale: str, seeds: Sequence[int], precision: str
) -> tuple[str, ...]:
    """Return the commands that reproduce the results of consecutive seeds of a row."""
    text = "--text_dir TEXT --data_dir DATA"
    counted = f"--seeds {len(seeds)}"
    if seeds[0] > 1:
        counted += f" --first_seed {seeds[0]}"
    return (
        f"PYTHONPATH=. python -m {_MODULE}.export {text} --to JOBS --scale {scale} "
        f"{counted} {row}",
        f"KERAS_BACKEND=jax PYTHONPATH=. python -m {_MODULE}.train --jobs JOBS "
        f"--to OUTCOMES --precision {precision}",
        f"PYTHONPATH=. python -m {_MODULE}.results --jobs JOBS --outcomes OUTCOMES "
        f"{text} --result_dir RESULTS --curve_dir CURVES",
    )


def seeds_of(
    job: Job, outcome: Outcome, data: PreparedData, corpus: Corpus, folder: Path
) -> list[Seed]:
    """Return every seed of a job with its systems.

    JAX made no search for parsers, whose runs are written to a folder instead.
    """
    if len(corpus.sources):
        ids = {name: outcome.arrays[f"ids/{name}"] for name in SYSTEMS}
        found = functools.partial(FoundSystem, data, job.hparams, corpus)
        systems = [
            {name: found(of_seeds[n]) for name, of_seeds in ids.items()}
            for n in range(len(job.seeds))
        ]
    else:
        if not folder.exists():
            write_system(job, outcome, data, folder)
        folders = system_folders(folder)
        systems = [{AVERAGED: System.load(each, AVERAGED)} for each in folders]
    return [Seed(job, outcome, n, data, own) for n, own in enumerate(systems)]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the program."""
    for name in ("jobs", "outcomes"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="their folder")
    parser.add_argument("--data_dir", type=Path, help="prepared data, if it was moved")
    for name in ("text_dir", "result_dir", "curve_dir"):
        parser.add_argument(f"--{name}", type=Path, help="of rows: their folder")


def run(args: argparse.Namespace) -> None:
    """Write result and curve files of rows, and print the scores of other runs.

    Raises:
        UserError: If a folder is missing, or the prepared data is of another corpus.
    """
    catalogue.load()
    corpus = Corpus.load(args.jobs / CORPUS_FILE)
    lines = [("run", "seed", "weights", "dev nll", "dev score")]
    for job, outcome in load_outcomes(args.jobs, args.outcomes):
        problem = catalogue.problem(job.run["problem"])
        data = PreparedData.load(args.data_dir or job.run["data_dir"], problem)
        if data.digest != job.run["data_digest"]:
            raise UserError(f"the data in {data.folder} is not that of {job.name}.")
        if job.row and None in (args.text_dir, args.result_dir, args.curve_dir):
            raise UserError("rows need --text_dir, --result_dir and --curve_dir.")
        for seed in seeds_of(job, outcome, data, corpus, args.outcomes / job.name):
            if job.row:
                print(seed.result(args.text_dir).save(args.result_dir))
                if seed.plan.recipe.ranks_systems:
                    print(seed.curve().save(args.curve_dir))
                continue
            for name, system in seed.systems.items():
                score, *_ = score_splits(system, data, ["dev"]).scores.values()
                cells = f"{seed.nll(name):.3f}", f"{score:.2f}"
                lines.append((job.name, str(job.seeds[seed.number]), name, *cells))
    if len(lines) > 1:
        print("\n".join(aligned(lines, right=(1, 3, 4))))


if __name__ == "__main__":
    sys.exit(run_program(__doc__, add_flags, run))
