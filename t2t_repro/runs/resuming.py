"""Decide whether a training run resumes the run in its folder, and with which settings.

This module imports no TensorFlow, so a command that contradicts a run fails at
once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro import catalogue
from t2t_repro.data.manifest import missing_data_folder
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import current_folder
from t2t_repro.runs.bleu_tokenizer import check_bleu_tokenizer, check_same_tokenizer
from t2t_repro.runs.run import RUN_FILE, Run, member_folders
from t2t_repro.runs.warm_start import check_warm_start
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    BEST_FOLDER,
    BEST_MODELS_FOLDER,
    CHECKPOINT_NAME,
    all_checkpoints,
    latest_step,
)
from t2t_repro.training.metrics_file import METRICS_FILE, event_files
from t2t_repro.training.update_size import UpdateSize


def find_run(output_dir: str | Path, *, is_described: bool) -> Run | None:
    """Return the run in a folder that completes the settings of a training run.

    Args:
        output_dir: Folder of the run.
        is_described: Whether the user describes the run in full. Then a run that
            ended before its first checkpoint does not count: there is nothing to
            resume, and its settings may be why it ended.
    """
    return resumable_run(output_dir) if is_described else Run.load(output_dir)


def resumable_run(output_dir: str | Path) -> Run | None:
    """Return the run in a folder, or None if it has no checkpoint to resume from."""
    run = Run.load(output_dir)
    return run if run is not None and all_checkpoints(output_dir) else None


def resumed_settings(
    run: Run, output_dir: str | Path, given: Mapping[str, Any]
) -> TrainSettings:
    """Return the settings of a run, overridden by the given ones.

    Args:
        run: The run to resume.
        output_dir: Folder of the run.
        given: Values of `TrainSettings` by name; hparams are added to the run's own.

    Raises:
        UsageError: If an earlier version began the run, which did not record the
            number of steps, and `given` does not have it.
        UserError: If another hparams set is given, whose values may contradict the
            run's own hparams; or see `Run.package`.
    """
    if not run.training and "train_steps" not in given:
        raise UsageError(
            f"{output_dir} holds a run of an earlier version, which did not record its "
            "number of steps: give train_steps."
        )
    settings = run.train_settings(output_dir)
    changes = dict(given)
    if "hparams_set" in changes:
        asked = dataclasses.replace(run, hparams_set=changes["hparams_set"])
        run.check_resumable(asked, output_dir)
    if "hparams" in changes:
        changes["hparams"] = merge_overrides(settings.hparams, changes["hparams"])
    run.package(changes.get("t2t_usr_dir"))  # training imports it
    return settings.replace(**changes)


def merge_overrides(recorded: str, given: str) -> str:
    """Return the recorded overrides together with the given ones, which win."""
    names = {piece.partition("=")[0].strip() for piece in given.split(",")}
    kept = [
        piece for piece in recorded.split(",") if piece.partition("=")[0] not in names
    ]
    return ",".join(piece for piece in (*kept, given) if piece)


def recorded_data_dir(run: Run, output_dir: str | Path) -> Path:
    """Return the folder of the data that a run was trained on.

    Raises:
        UserError: If the folder does not exist any more.
    """
    folder = Path(run.data_dir)
    if not folder.is_dir():
        recorded = f", recorded in {Path(output_dir) / RUN_FILE},"
        raise missing_data_folder(folder, recorded)
    return folder


def resolved_hparams(settings: TrainSettings) -> HParams:
    """Return the hparams of a training run: the set, its overrides, derived values.

    Raises:
        UsageError: If the set is unknown or an override is refused.
    """
    catalogue.load(settings.t2t_usr_dir)
    return catalogue.hparams(settings.hparams_set).parse(settings.hparams).resolved()


def checked_search(settings: TrainSettings, problem: Problem) -> DecodeHParams:
    """Check how a run is scored, and return the search as given.

    Args:
        settings: Settings of the training run.
        problem: The problem, whose defaults complete the search.

    Raises:
        UserError: If a setting of the search is refused, or the tokenizer of BLEU needs
            a package or a file that is not there.
        UsageError: If a setting would have no effect or cannot work.
    """
    check_bleu_tokenizer(settings.bleu_tokenizer, problem)
    search = DecodeHParams().parse_for("train", settings.decode_hparams)
    with_problem_defaults(search, problem, resolved_hparams(settings).max_length)
    return search


def check_run_folder(settings: TrainSettings, problem: str) -> None:
    """Create the folder of a run, or check that the run in it can be resumed.

    Call this before data is prepared; `train` also compares the data.

    Args:
        settings: Settings of the training run.
        problem: Name of the problem.

    Raises:
        UserError: If the run in the folder has other settings, or the folder holds
            files that a new run would resume from, replace or remove.
        UsageError: If an hparam is refused, or the run has more steps.
    """
    _check_spike_factor(settings)
    _check_scored_evaluations(settings)
    output_dir = Path(settings.output_dir)
    hparams = resolved_hparams(settings)
    _check_no_ensemble(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    run = resumable_run(output_dir)
    check_warm_start(settings, run)
    if run is None:
        _check_folder_of_new_run(output_dir)
        _check_batch_size(hparams)
        update_size(hparams, num_replicas=1)  # more replicas need larger updates
        return
    asked = dataclasses.replace(
        run,
        problem=problem,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=hparams,
        random_seed=settings.random_seed,
    )
    run.check_resumable(asked, output_dir)
    check_same_tokenizer(settings, run)
    step = latest_step(output_dir)
    if step > settings.train_steps:
        raise UsageError(
            f"received train_steps={settings.train_steps}, but the run in "
            f"{output_dir} is at step {step}: give more to train further, or leave it "
            "out."
        )


def _check_no_ensemble(output_dir: Path) -> None:
    """Refuse the folder of an ensemble.

    Raises:
        UserError: If it is one.
    """
    members = member_folders(output_dir)
    if members:
        raise UserError(
            f"received output_dir={output_dir}, the folder of an ensemble, expected "
            f"the folder of a member, such as {members[0]}, or a new folder."
        )


def _check_folder_of_new_run(output_dir: Path) -> None:
    """Refuse a folder with files that a new run would resume from, replace or remove.

    Raises:
        UserError: If it holds files of a run without the description of that run, or
            an average without the checkpoints of its run.
    """
    if Run.load(output_dir) is None:
        _check_nothing_is_replaced(output_dir)
    elif all_checkpoints(current_folder(output_dir / AVERAGED_FOLDER)):
        raise UserError(
            f"received output_dir={output_dir}, which holds an averaged checkpoint but "
            f"no {CHECKPOINT_NAME}-* to resume from, expected another folder: a new "
            "run would replace the average."
        )


def _check_nothing_is_replaced(output_dir: Path) -> None:
    """Refuse a folder with files that have the names of a run's.

    Raises:
        UserError: If there are any.
    """
    found = [f"{CHECKPOINT_NAME}-*"] if all_checkpoints(output_dir) else []
    names = (METRICS_FILE, AVERAGED_FOLDER, BEST_FOLDER, BEST_MODELS_FOLDER)
    found += [name for name in names if current_folder(output_dir / name).exists()]
    splits = sorted({path.parent.name for path in event_files(output_dir)})
    found += [f"events in {split}" for split in splits]
    if found:
        raise UserError(
            f"received output_dir={output_dir}, which holds {', '.join(found)} without "
            f"the {RUN_FILE} of their run: restore that file to resume the run, or "
            "give another output_dir. To begin a new run with weights of another run, "
            "give that run's folder as warm_start_from."
        )


def _check_scored_evaluations(settings: TrainSettings) -> None:
    """Refuse settings that need scores without evaluations that give any.

    Raises:
        UsageError: If there is one.
    """
    for name in [] if settings.eval_sentences else settings_that_need_scores(settings):
        raise UsageError(
            f"received {name}={getattr(settings, name)}, which has no effect with "
            "eval_sentences=0: give eval_sentences as well."
        )


def settings_that_need_scores(settings: TrainSettings) -> list[str]:
    """Return the names of settings that depend on the scores of evaluations."""
    needy = {
        "early_stopping_patience": settings.early_stopping_patience,
        "keep_best": settings.keep_best - 1,
    }
    return [name for name, value in needy.items() if value]


def _check_spike_factor(settings: TrainSettings) -> None:
    """Refuse a factor that would skip every update, or none.

    Raises:
        UsageError: If `spike_factor` is too small or has no effect.
    """
    factor = settings.spike_factor
    if 0 < factor <= 1:
        raise UsageError(f"received spike_factor={factor}, expected 0 or more than 1.")
    if factor and not settings.max_skipped_updates:
        raise UsageError(
            f"received spike_factor={factor}, which has no effect with "
            "max_skipped_updates=0: give max_skipped_updates as well."
        )


def _check_batch_size(hparams: HParams) -> None:
    """Refuse a batch that is smaller than one long sentence.

    Runs of earlier versions may have one, so only a new run is refused.

    Raises:
        UsageError: If `batch_size` is below `max_length`.
    """
    packed = hparams.packed_length
    name, longest = (
        ("packed_length", packed) if packed else ("max_length", hparams.max_length)
    )
    if hparams.batch_size < longest:
        raise UsageError(
            f"received batch_size={hparams.batch_size}, expected at least {name}="
            f"{longest} tokens: one long sentence must fit into a batch."
        )


def update_size(hparams: HParams, num_replicas: int) -> UpdateSize:
    """Plan the replicas, tokens and micro-batches of an update.

    Args:
        hparams: Hparams of the model.
        num_replicas: Number of replicas, on all machines together.

    Raises:
        UsageError: If one long sentence does not fit into a micro-batch.
    """
    size = UpdateSize.plan(
        update_tokens=hparams.update_tokens,
        batch_size=hparams.batch_size,
        replicas=num_replicas,
    )
    longest = hparams.packed_length or hparams.max_length
    if hparams.update_tokens and size.tokens < longest:
        raise UsageError(
            f"received update_tokens={hparams.update_tokens}, which leaves {size}, "
            f"expected at least {longest} tokens: one row of the longest sentence must "
            "fit into a micro-batch."
        )
    return size
