"""Score the outcomes of jobs, and write result and curve files; needs TensorFlow.

From the root of the checkout:

    PYTHONPATH=. python -m benchmarks.accelerator.rows.results --jobs jobs \
        --outcomes outcomes --text_dir multi30k --data_dir data --result_dir results \
        --curve_dir curves
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.accelerator.program import exit_code
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.found import FoundSystem, found_by_piece
from benchmarks.accelerator.rows.job import Job
from benchmarks.accelerator.rows.outcome import (
    AVERAGED,
    LAST,
    Outcome,
    load_outcomes,
)
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.lookup import find_row
from t2t_repro.features.reproduction.plan import Plan, plan_of
from t2t_repro.features.reproduction.ranking_scores import Output, pooled_bleu
from t2t_repro.features.reproduction.results import Result, averaged_score
from t2t_repro.features.reproduction.run_row import named_scores, open_data

sys.path.append(str(Path(__file__).parents[3] / "docs"))
from results.curves import Curve, rounded

_MODULE = "benchmarks.accelerator.rows"
# Programs that score rows -> flags of the other folders that they write.
_WRITES = {"results": "--curve_dir CURVES", "parsers": "--to PARSERS"}


@dataclasses.dataclass(frozen=True)
class Scored:
    """Everything that the results of a job need.

    Attributes:
        job: The job.
        outcome: What its training left.
        corpus: Its corpus.
        data: Prepared data of the corpus.
        text_dir: Folder of the raw text.
    """

    job: Job
    outcome: Outcome
    corpus: Corpus
    data: PreparedData
    text_dir: Path

    def plan(self, seed: int) -> Plan:
        """Return the plan of the row's run with a seed."""
        return row_plan(self.job, seed)

    def result(self, number: int) -> Result:
        """Return the result of a seed, counted from 0."""
        plan = self.plan(self.job.seeds[number])
        systems = (LAST, AVERAGED) if plan.recipe.ranks_systems else (LAST,)
        scores: dict[str, float] = {}
        signature = ""
        for system in systems:
            own, signature = self._scores(plan, system, number)
            if system == AVERAGED:
                own = {averaged_score(name): value for name, value in own.items()}
            scores |= own
        return row_result(
            self.job, self.outcome, plan, scores, signature, self.text_dir, "results"
        )

    def _scores(
        self, plan: Plan, system: int, number: int
    ) -> tuple[dict[str, float], str]:
        """Return the scores of one system and seed, and sacreBLEU's signature."""
        found = found_by_piece(self.corpus, self.outcome.ids[system, number])
        decoder = FoundSystem(self.data, self.job.hparams.max_length, found)
        scores: dict[str, float] = {}
        outputs, signature = [], ""
        for split in plan.recipe.splits:
            texts, references = self.data.raw_text(split)
            evaluation = decoder.evaluate(texts, references, self.job.decode_hparams)
            scores |= named_scores(evaluation, references, split)
            signature = evaluation.scores.bleu.signature
            outputs.append(Output(evaluation, references))
        nll = float(self.outcome.final_nll(system)[number])
        scores["perplexity (dev)"] = math.exp(nll)
        if plan.recipe.ranks_systems:
            pooled = "+".join(plan.recipe.splits)
            scores |= {"nll (dev)": nll, f"BLEU ({pooled})": pooled_bleu(outputs)}
        return scores, signature

    def curve(self, number: int) -> Curve:
        """Return the learning curve of a seed, counted from 0."""
        plan = self.plan(self.job.seeds[number])
        (row,) = plan.rows
        return Curve(
            name=f"{row.system}-{plan.scale}",
            seed=plan.seed,
            problem=plan.recipe.problem,
            hparams_set=plan.recipe.hparams_set,
            settings=self.job.hparams.given(),
            data_digest=self.corpus.data_digest,
            versions=json.loads(self.outcome.versions),
            steps=self.outcome.steps.tolist(),
            nll=[rounded(float(x)) for x in self.outcome.nll[:, number]],
            branches=branches(self.outcome, number),
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


def row_plan(job: Job, seed: int) -> Plan:
    """Return the plan of the run of a job's row with a seed."""
    table, row = find_row(job.details["row"])
    return plan_of(table, row, job.details["scale"], seed)


def row_result(
    job: Job,
    outcome: Outcome,
    plan: Plan,
    scores: Mapping[str, float],
    signature: str,
    text_dir: Path,
    program: str,
) -> Result:
    """Return the result of a job's row with one seed.

    Args:
        job: The job.
        outcome: What its training left.
        plan: Plan of the row's run with the seed.
        scores: Scores by name.
        signature: sacreBLEU's, or empty.
        text_dir: Folder of the raw text.
        program: Program that scored the row, a key of `_WRITES`.
    """
    (row,) = plan.rows
    details = job.details["row"], plan.scale, job.seeds, outcome.precision
    return Result(
        system=str(row.system),
        scale=plan.scale,
        seed=plan.seed,
        scores=scores,
        signature=signature,
        steps=int(outcome.steps[-1]),
        seconds=round(outcome.seconds, 1),
        parameters=outcome.parameters,
        commands=commands(*details, program),
        data=plan.recipe.text_digests(text_dir),
        hardware=hardware(job, outcome),
        versions=json.loads(outcome.versions),
    )


def row_data(job: Job, text_dir: Path, data_dir: Path) -> PreparedData:
    """Open the prepared data of a job's row."""
    recipe = row_plan(job, job.seeds[0]).recipe
    return open_data(recipe, text_dir, data_dir)


def hardware(job: Job, outcome: Outcome) -> str:
    """Return a description of what a job was trained on, for result files."""
    at_once = len(job.seeds)
    text = f"1 x {outcome.device}, {at_once} {'seeds' if at_once > 1 else 'seed'}"
    text += " at once" if at_once > 1 else ""
    return text + (", beside other training runs" if outcome.processes > 1 else "")


def commands(
    row: str, scale: str, seeds: Sequence[int], precision: str, program: str
) -> tuple[str, ...]:
    """Return the commands that reproduce the results of a row, in order.

    Args:
        row: The row, as TABLE/ROW.
        scale: "small" or "long".
        seeds: Consecutive seeds that are trained at once.
        precision: Precision of the training.
        program: Program that scores the row, a key of `_WRITES`.
    """
    text = "--text_dir TEXT --data_dir DATA"
    counted = f"--seeds {len(seeds)}"
    if seeds[0] > 1:
        counted += f" --first_seed {seeds[0]}"
    return (
        f"PYTHONPATH=. python -m {_MODULE}.export {text} --to JOBS --scale {scale} "
        f"{counted} {row}",
        f"KERAS_BACKEND=jax PYTHONPATH=. python -m {_MODULE}.train --jobs JOBS "
        f"--to OUTCOMES --precision {precision}",
        f"PYTHONPATH=. python -m {_MODULE}.{program} --jobs JOBS --outcomes OUTCOMES "
        f"{text} --result_dir RESULTS {_WRITES[program]}",
    )


def scored_jobs(args: argparse.Namespace) -> Iterator[Scored]:
    """Yield every row that has an outcome.

    Raises:
        UserError: If there is none, a job is a trial or a parser, or the prepared data
            is not that of the corpus.
    """
    for job, outcome in load_outcomes(args.jobs, args.outcomes):
        if "row" not in job.details:
            raise UserError(f"{job.name} is no row of a table: score it as a trial.")
        if not outcome.ids.size:
            raise UserError(
                f"{job.name} brought back weights, not translations: score it with "
                f"{_MODULE}.parsers."
            )
        data = row_data(job, args.text_dir, args.data_dir)
        corpus = Corpus.load(args.jobs / job.corpus)
        if corpus.data_digest != data.digest:
            raise UserError(f"the data in {args.data_dir} is not that of {args.jobs}.")
        yield Scored(job, outcome, corpus, data, args.text_dir)


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, meaning in {
        "jobs": "folder of the jobs",
        "outcomes": "folder of the outcomes",
        "text_dir": "folder of the raw text",
        "data_dir": "folder of the prepared data",
        "result_dir": "folder for the result files",
        "curve_dir": "folder for the curve files",
    }.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=meaning)
    return parser.parse_args(arguments)


def run(args: argparse.Namespace) -> None:
    """Write result and curve files."""
    for scored in scored_jobs(args):
        for number in range(len(scored.job.seeds)):
            print(scored.result(number).save(args.result_dir))
            if scored.plan(1).recipe.ranks_systems:
                print(scored.curve(number).save(args.curve_dir))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return 0, or 1 after an error of the user."""
    args = parse_flags(arguments)
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
