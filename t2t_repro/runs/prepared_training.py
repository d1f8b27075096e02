"""A training run that is complete and checked before it begins.

This module imports no TensorFlow, so a command that contradicts a run fails at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro import catalogue
from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.data.manifest import missing_data_folder
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import current_folder
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
from t2t_repro.training.update_size import UpdateSize, check_batch_size
from t2t_repro.translation_scores import announced_tokenizer, check_usable

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData


@dataclasses.dataclass(frozen=True)
class PreparedTraining:
    """A training run with all that its settings stand for, so nobody reads them again.

    Make one by `of`, which checks it and creates the folder of the run.

    Attributes:
        settings: Settings of the training run.
        problem: The problem.
        hparams: The hparams set with the user's changes and derived values.
        search: The search that scores the run, as given.
        recorded: The run that the folder described when it was read, or None.
        before: The same run, if it has a checkpoint to resume from, or None.
    """

    settings: TrainSettings
    problem: Problem
    hparams: HParams
    search: DecodeHParams
    recorded: Run | None
    before: Run | None
    _sizes: dict[int, UpdateSize] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, settings: TrainSettings, problem: Problem, recorded: Run | None
    ) -> PreparedTraining:
        """Complete and check a training run, before its data is prepared.

        Args:
            settings: Settings of the training run.
            problem: The problem.
            recorded: What `Run.load` returns for the folder of the run.

        Raises:
            UserError: If the run in the folder has other settings, the folder holds
                files that a new run would resume from, replace or remove, or the search
                that scores it is refused.
            UsageError: If a setting is refused, would have no effect or cannot work, or
                the run has more steps.
        """
        _check_spike_factor(settings)
        _check_scored_evaluations(settings)
        hparams = resolved_hparams(settings)
        # A problem that nobody can find again could never be loaded.
        catalogue.problem(problem.name)
        check_bleu_tokenizer(settings.bleu_tokenizer, problem)
        search = DecodeHParams().parse_for("train", settings.decode_hparams)
        with_problem_defaults(search, problem, hparams.max_length)
        output_dir = Path(settings.output_dir)
        _check_no_ensemble(output_dir)
        output_dir.mkdir(parents=True, exist_ok=True)
        before = recorded if all_checkpoints(output_dir) else None
        check_warm_start(settings, before)
        if settings.warm_start_from is not None:
            source = str(Path(settings.warm_start_from).resolve())
            settings = settings.replace(warm_start_from=source)
        training = cls(settings, problem, hparams, search, recorded, before)
        if before is None:
            _check_folder_of_new_run(output_dir, recorded)
            check_batch_size(hparams)
            training.update_size(1)  # more replicas need larger updates
        else:
            training.check_resumes(before)
        return training

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """What the user changed in the set, by name: its value and the new one."""
        named_set = catalogue.hparams(self.settings.hparams_set).values()
        return {
            name: (named_set[name], value)
            for name, value in self.hparams.given().items()
            if value != named_set[name]
        }

    def check_resumes(self, before: Run) -> None:
        """Refuse to resume a run with other settings than it began with.

        Raises:
            UserError: If they differ.
            UsageError: If the scores would not be comparable, or the run has more
                steps.
        """
        settings = self.settings
        asked = dataclasses.replace(
            before,
            problem=self.problem.name,
            model=settings.model,
            hparams_set=settings.hparams_set,
            hparams=self.hparams,
            random_seed=settings.random_seed,
        )
        before.check_resumable(asked, settings.output_dir)
        _check_same_tokenizer(settings, before)
        step = latest_step(settings.output_dir)
        if step > settings.train_steps:
            raise UsageError(
                f"received train_steps={settings.train_steps}, but the run in "
                f"{settings.output_dir} is at step {step}: give more to train further, "
                "or leave it out."
            )

    def update_size(self, num_replicas: int) -> UpdateSize:
        """Return the size of an update, which is planned once per number of replicas.

        Args:
            num_replicas: Number of replicas, on all machines together.

        Raises:
            UsageError: If one long sentence does not fit into a micro-batch.
        """
        if num_replicas not in self._sizes:
            self._sizes[num_replicas] = UpdateSize.of(self.hparams, num_replicas)
        return self._sizes[num_replicas]

    def now(self) -> PreparedTraining:
        """Return this training after another process may have used its folder."""
        output_dir = self.settings.output_dir
        recorded = Run.load(output_dir)
        resumes = self.before is not None
        if recorded == self.recorded and bool(all_checkpoints(output_dir)) == resumes:
            return self
        return PreparedTraining.of(self.settings, self.problem, recorded)

    def with_chosen_tokenizer(self, data: PreparedData) -> PreparedTraining:
        """Return the same training with the tokenizer that all its scores use.

        It stays "auto" if the problem is not scored by BLEU, or there is no dev text.

        Args:
            data: Prepared data.
        """
        chosen = self.settings.bleu_tokenizer
        if chosen == AUTO_TOKENIZER and self.before is not None:
            chosen = self.before.bleu_tokenizer
        problem = data.problem
        if chosen == AUTO_TOKENIZER and problem.scores_bleu and "dev" in data.splits:
            _, references = data.raw_text("dev")
            chosen = announced_tokenizer(chosen, references, problem.target_language)
        return self.replace(bleu_tokenizer=chosen)

    def replace(self, **settings: Any) -> PreparedTraining:
        """Return the same training with other settings."""
        return dataclasses.replace(self, settings=self.settings.replace(**settings))


def resolved_hparams(settings: TrainSettings) -> HParams:
    """Return the hparams of a training run: the set, its overrides, derived values.

    Raises:
        UsageError: If the set is unknown or an override is refused.
    """
    catalogue.load(settings.t2t_usr_dir)
    return catalogue.hparams(settings.hparams_set).parse(settings.hparams).resolved()


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


def check_bleu_tokenizer(tokenizer: str, problem: Problem) -> None:
    """Refuse a tokenizer that cannot be used, before any work.

    Raises:
        UsageError: If it would have no effect on the problem's scores.
        UserError: If it needs a package or a file that is not there.
    """
    if tokenizer != AUTO_TOKENIZER and not problem.scores_bleu:
        raise UsageError(
            f"received bleu_tokenizer={tokenizer} for problem {problem.name}, which is "
            "not scored by BLEU: leave it out."
        )
    check_usable(tokenizer)


def _check_same_tokenizer(settings: TrainSettings, run: Run) -> None:
    """Refuse another tokenizer than that of the run to resume.

    Raises:
        UsageError: If it differs.
    """
    before, asked = run.bleu_tokenizer, settings.bleu_tokenizer
    if AUTO_TOKENIZER not in (before, asked) and before != asked:
        raise UsageError(
            f"received bleu_tokenizer={asked}, but the run in {settings.output_dir} "
            f"has scores with {before}, which cannot be compared: leave it out to "
            "resume the run, and give it to `t2t evaluate`."
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


def _check_folder_of_new_run(output_dir: Path, recorded: Run | None) -> None:
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
