"""Begin a run in its folder, or resume the one that is there.

This module imports no TensorFlow, so a command that contradicts a run fails at once.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.data.manifest import missing_data_folder
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import current_folder
from t2t_repro.runs.run import (
    NO_DATA,
    RUN_FILE,
    Run,
    describe_run,
    member_folders,
    save_tokenizers,
)
from t2t_repro.runs.run_checkpoints import check_fits
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    BEST_FOLDER,
    BEST_MODELS_FOLDER,
    CHECKPOINT_NAME,
    all_checkpoints,
    latest_step,
)
from t2t_repro.training.metrics_file import METRICS_FILE, event_files

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs.training_config import TrainingConfig

logger = logging.getLogger(__name__)


def begin_or_resume(
    config: TrainingConfig, data: PreparedData, num_replicas: int
) -> Run:
    """Write the description of a run, after comparing it with the one to resume.

    Args:
        config: The training run.
        data: Prepared data.
        num_replicas: Number of replicas of all workers.

    Raises:
        UsageError: If the user asked for one vocabulary, and the data has two.
        UserError: If the folder holds another run, or its description asks for a much
            larger model than its checkpoint has.
    """
    settings, before = config.settings, config.resumed_run
    output_dir = Path(settings.output_dir)
    tokenizers = data.tokenizers()
    _check_sharing(config.hparams, *tokenizers)
    asked = describe_run(
        settings, config.hparams, data.problem.name, data, num_replicas
    )
    if before is not None:
        before.check_same_tokenizers(output_dir, *tokenizers)
        before.check_resumable(asked, output_dir)
        check_fits(before, output_dir, tokenizers, all_checkpoints(output_dir)[-1])
        _warn_of_rising_rate(before, settings)
        # The data and the package may have moved.
        run = dataclasses.replace(
            before.with_data(asked),
            training=asked.training
            | {"warm_start_from": before.training.get("warm_start_from")},
            data_dir=asked.data_dir,
            usr_dir=asked.usr_dir,
        )
    else:
        if config.recorded_run is not None:
            _remove_leftovers(output_dir)
        names = save_tokenizers(output_dir, *tokenizers)
        run = dataclasses.replace(asked, tokenizers=names)
    run.save(output_dir)
    return run


def _check_sharing(hparams: HParams, source: Tokenizer, target: Tokenizer) -> None:
    """Log if embeddings are not shared because there are two vocabularies.

    Raises:
        UsageError: If the user asked for sharing.
    """
    name = "shared_embedding_and_softmax_weights"
    if source.same_ids(target) or not getattr(hparams, name):
        return
    if hparams.origins[name] == HParams.flag:
        raise UsageError(
            f"received {name}=true, and data with one vocabulary per side, whose ids "
            "mean different text: leave it out, or prepare the data with one "
            "vocabulary for both."
        )
    logger.info("two vocabularies: embeddings and softmax share no weights")


def _warn_of_rising_rate(before: Run, settings: TrainSettings) -> None:
    """Log that training further raises a learning rate that has begun to decay."""
    hparams = before.hparams.resolved()
    end, new_end = before.training.get("train_steps", 0), settings.train_steps
    step, decay = latest_step(settings.output_dir), hparams.learning_rate_decay_steps
    if "linear_decay" not in hparams.learning_rate_schedule or new_end <= end:
        return
    if step > end - decay:
        was, becomes = (min(1.0, (last + 1 - step) / decay) for last in (end, new_end))
        logger.warning(
            "the learning rate rises again: with train_steps=%d, linear_decay was at "
            "%.2g of the rate at step %d, and with train_steps=%d it is at %.2g",
            *(end, was, step, new_end, becomes),
        )


def _remove_leftovers(output_dir: Path) -> None:
    """Remove the best models and events of a run that has no checkpoint to resume from.

    A run writes its description first, so files without one belong to something else
    and stay.
    """
    for stale in (BEST_FOLDER, BEST_MODELS_FOLDER):
        shutil.rmtree(output_dir / stale, ignore_errors=True)
    for events in event_files(output_dir):
        events.unlink()


def resumed_settings(
    run: Run, output_dir: str | Path, given: Mapping[str, Any]
) -> TrainSettings:
    """Return the settings of a run, overridden by the given ones.

    Args:
        run: The run to resume.
        output_dir: Folder of the run.
        given: Values of `TrainSettings` by name; hparams are added to the run's own.

    Raises:
        UserError: If another hparams set is given, whose values may contradict the
            run's own hparams; or see `Run.package`.
    """
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
    """Merge the recorded overrides with the given ones, which take precedence."""
    names = {piece.partition("=")[0].strip() for piece in given.split(",")}
    kept = [
        piece for piece in recorded.split(",") if piece.partition("=")[0] not in names
    ]
    return ",".join(piece for piece in (*kept, given) if piece)


def recorded_data_dir(run: Run, output_dir: str | Path) -> Path:
    """Return the folder of the data that a run was trained on.

    Raises:
        UserError: If the folder does not exist any more.
        UsageError: If the run has no data yet.
    """
    if run.data_digest == NO_DATA:
        raise UsageError(
            f"the run in {output_dir} was imported without data: give problem and "
            "data_dir, of data with the same vocabulary."
        )
    folder = Path(run.data_dir)
    if not folder.is_dir():
        recorded = f", recorded in {Path(output_dir) / RUN_FILE},"
        raise missing_data_folder(folder, recorded)
    return folder


def check_resumed_run(run: Run, config: TrainingConfig) -> None:
    """Refuse to resume a run with settings other than its own.

    Args:
        run: The run to resume.
        config: The requested training.

    Raises:
        UserError: If the settings differ.
        UsageError: If the scores would not be comparable, or the run is already past
            `train_steps`.
    """
    settings = config.settings
    asked = dataclasses.replace(
        run,
        problem=config.problem.name,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=config.hparams,
        random_seed=settings.random_seed,
    )
    run.check_resumable(asked, settings.output_dir)
    before, tokenizer = run.bleu_tokenizer, settings.bleu_tokenizer
    if AUTO_TOKENIZER not in (before, tokenizer) and before != tokenizer:
        raise UsageError(
            f"received bleu_tokenizer={tokenizer}, but the run in "
            f"{settings.output_dir} has scores with {before}, which cannot be "
            "compared: leave it out to resume the run, and give it to `t2t evaluate`."
        )
    step = latest_step(settings.output_dir)
    if step > settings.train_steps:
        raise UsageError(
            f"received train_steps={settings.train_steps}, but the run in "
            f"{settings.output_dir} is at step {step}: give more to train further, "
            "or leave it out."
        )


def check_no_ensemble(output_dir: Path) -> None:
    """Refuse the folder of an ensemble.

    Raises:
        UserError: If the folder holds an ensemble.
    """
    members = member_folders(output_dir)
    if members:
        raise UserError(
            f"received output_dir={output_dir}, the folder of an ensemble, expected "
            f"the folder of a member, such as {members[0]}, or a new folder."
        )


def check_new_run(output_dir: Path, recorded: Run | None) -> None:
    """Refuse a folder with files that a new run would resume from, replace or remove.

    Raises:
        UserError: If it holds files of a run without the description of that run, or
            an average without the checkpoints of its run.
    """
    if recorded is None:
        _check_nothing_is_replaced(output_dir)
    elif all_checkpoints(current_folder(output_dir / AVERAGED_FOLDER)):
        raise UserError(
            f"received output_dir={output_dir}, which holds an averaged checkpoint but "
            f"no {CHECKPOINT_NAME}-* to resume from, expected another folder: a new "
            "run would replace the average."
        )


def _check_nothing_is_replaced(output_dir: Path) -> None:
    """Refuse a folder with files that a new run would replace.

    Raises:
        UserError: If there are such files.
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
