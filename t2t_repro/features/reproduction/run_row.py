"""Train and score one row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro import catalogue
from t2t_repro.data.prepare import open_or_prepare
from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.paper_tables import Row
from t2t_repro.features.reproduction.recipes import Recipe
from t2t_repro.features.reproduction.result_files import (
    Result,
    averaged_score,
    hardware,
)
from t2t_repro.features.reproduction.row_plan import (
    Plan,
    RunFolders,
    check_folders,
    hypotheses_file,
)
from t2t_repro.features.reproduction.row_scores import (
    ranking_scores,
    score_splits,
)
from t2t_repro.files import atomic_write
from t2t_repro.runs import System, TrainSettings, train
from t2t_repro.training.metrics_file import (
    EVAL_SPLIT,
    TRAIN_SPLIT,
    split_records,
    training_seconds,
)

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData


def run_row(plan: Plan, folders: RunFolders) -> list[Path]:
    """Train a row, and score and write a result file for each row of the training run.

    A training run that was interrupted is resumed.

    Args:
        plan: Training, and rows to score.
        folders: Folders to read and write.

    Returns:
        Paths of the result files.

    Raises:
        UsageError: If a folder is missing.
        UserError: If text or the folder of results is missing, or training fails.
    """
    check_folders(plan, folders)
    recipe = plan.recipe
    text_dir = folders.text_dir or Path()
    text_digests = recipe.text_digests(text_dir)
    data = open_data(recipe, text_dir, folders.data_dir)
    settings = train_settings(plan, folders.output_dir)
    trained = train(settings, data, show_progress=True)
    if not trained.complete:
        raise UserError(
            f"training stopped at step {trained.steps} of {recipe.train_steps}; the "
            "same command resumes it."
        )
    paths = []
    for row in plan.rows:
        result = _score(plan, row, folders.output_dir, data, text_digests)
        paths.append(result.save(folders.result_dir or folders.output_dir))
    return paths


def open_data(recipe: Recipe, text_dir: Path, data_dir: Path) -> PreparedData:
    """Open the prepared data of a recipe, after preparing it if it is missing."""
    catalogue.load()
    problem = catalogue.problem(recipe.problem)
    if recipe.text:
        problem = problem.with_files(recipe.text_files(text_dir))
    given = {} if recipe.vocab_size is None else {"vocab_size": recipe.vocab_size}
    return open_or_prepare(problem, data_dir, given)


def train_settings(plan: Plan, output_dir: str | Path) -> TrainSettings:
    """Return the settings of a plan's training run."""
    recipe = plan.recipe
    return TrainSettings(
        output_dir=str(output_dir),
        hparams_set=recipe.hparams_set,
        hparams=recipe.hparams,
        random_seed=plan.seed,
        train_steps=recipe.train_steps,
        average_last=recipe.average_last,
        save_checkpoints_steps=recipe.save_checkpoints_steps,
        save_checkpoints_secs=float(recipe.save_checkpoints_secs or 0),
    )


def _score(
    plan: Plan,
    row: Row,
    output_dir: Path,
    data: PreparedData,
    text_digests: Mapping[str, str],
) -> Result:
    """Score one row with every checkpoint of the recipe."""
    recipe = plan.recipe
    scores = _perplexity(recipe, row, output_dir)
    signature, parameters = "", 0
    versions: Mapping[str, str] = {}
    for checkpoint in recipe.checkpoints:
        system = System.load(output_dir, checkpoint)
        system.replace_branch_weights(row.branch_weights, plan.seed)
        scored = score_splits(system, data, recipe.splits)
        for split, output in scored.outputs.items():
            lines = "".join(f"{line}\n" for line in output.evaluation.hypotheses)
            name = hypotheses_file(recipe, row, checkpoint, split)
            atomic_write(output_dir / name, lines)
        signature, parameters = scored.signature, system.model.count_params()
        versions, found = system.run.versions, scored.scores
        if recipe.ranks_systems:
            found |= ranking_scores(system, data, scored.outputs)
        is_first = checkpoint == recipe.checkpoints[0]
        scores |= {
            name if is_first else averaged_score(name): value
            for name, value in found.items()
        }
    return Result(
        system=str(row.system),
        scale=plan.scale,
        seed=plan.seed,
        scores=scores,
        signature=signature,
        steps=recipe.train_steps,
        seconds=round(training_seconds(split_records(output_dir, TRAIN_SPLIT)), 1),
        parameters=parameters,
        commands=tuple(Plan(plan.scale, plan.seed, recipe, (row,)).commands()),
        data=text_digests,
        hardware=hardware(),
        versions=versions,
    )


def _perplexity(recipe: Recipe, row: Row, output_dir: Path) -> dict[str, float]:
    """Return the last dev perplexity, unless other weights are scored."""
    if recipe.average_last or row.branch_weights != "learned":
        return {}
    last = split_records(output_dir, EVAL_SPLIT)[-1]
    return {"perplexity (dev)": last["perplexity"]}
