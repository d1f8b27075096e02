"""Resolve and check the settings of a training run.

This module imports no TensorFlow, so a command that contradicts a run fails at once.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro import catalogue
from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.data.batch_plan import UpdateSize
from t2t_repro.data.problem import Problem
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UsageError
from t2t_repro.runs.resuming import check_new_run, check_no_ensemble, check_resumed_run
from t2t_repro.runs.run import Run
from t2t_repro.runs.warm_start import check_warm_start
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import all_checkpoints
from t2t_repro.translation_scores import announced_tokenizer, check_usable

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Resolved and checked settings of a training run.

    Make one by `from_settings`, which also creates the folder of the run. A `Run`
    records them there, and a `TrainingContext` has them beside the model and the data.

    Attributes:
        settings: Settings of the training run.
        problem: The problem.
        hparams: The hparams set with the user's changes and derived values.
        decode_hparams: The search that scores the run, as given.
        recorded_run: The run that the folder described when it was read, or None.
        resumed_run: The same run, if it has a checkpoint to resume from, or None.
    """

    settings: TrainSettings
    problem: Problem
    hparams: HParams
    decode_hparams: DecodeHParams
    recorded_run: Run | None
    resumed_run: Run | None

    @classmethod
    def from_settings(cls, settings: TrainSettings, problem: Problem) -> TrainingConfig:
        """Complete and check a training run, before its data is prepared.

        Args:
            settings: Settings of the training run.
            problem: The problem.

        Raises:
            UserError: If the run in the folder has other settings, the folder holds
                files that a new run would resume from, replace or remove, or the search
                that scores it is refused.
            UsageError: If a setting is refused, would have no effect or cannot work, or
                the run is already past `train_steps`.
        """
        recorded = Run.load(settings.output_dir)
        _check_spike_factor(settings)
        if not settings.eval_sentences:
            _refuse_need_of_scores(
                settings,
                ", which has no effect with eval_sentences=0: give eval_sentences as "
                "well.",
            )
        hparams = resolved_hparams(settings)
        # A run of an unregistered problem could never be loaded.
        catalogue.problem(problem.name)
        check_bleu_tokenizer(settings.bleu_tokenizer, problem)
        decode_hparams = DecodeHParams().parse_for("train", settings.decode_hparams)
        with_problem_defaults(decode_hparams, problem, hparams.max_length)
        output_dir = Path(settings.output_dir)
        check_no_ensemble(output_dir)
        output_dir.mkdir(parents=True, exist_ok=True)
        resumed = recorded if all_checkpoints(output_dir) else None
        check_warm_start(settings, resumed)
        if settings.warm_start_from is not None:
            source = str(Path(settings.warm_start_from).resolve())
            settings = settings.replace(warm_start_from=source)
        config = cls(settings, problem, hparams, decode_hparams, recorded, resumed)
        if resumed is None:
            check_new_run(output_dir, recorded)
            UpdateSize.of(hparams, 1)  # refuses what no number of replicas can do
        else:
            check_resumed_run(resumed, config)
        return config

    @property
    def changed_hparams(self) -> dict[str, tuple[Any, Any]]:
        """The hparams that the user changed, by name: value in the set, new value."""
        named_set = catalogue.hparams(self.settings.hparams_set).values()
        return {
            name: (named_set[name], value)
            for name, value in self.hparams.given().items()
            if value != named_set[name]
        }

    def reloaded(self) -> TrainingConfig:
        """Return this training after another process may have used its folder."""
        output_dir = self.settings.output_dir
        resumes = bool(all_checkpoints(output_dir))
        is_same = Run.load(output_dir) == self.recorded_run
        if is_same and resumes == (self.resumed_run is not None):
            return self
        return TrainingConfig.from_settings(self.settings, self.problem)

    def check_splits(self, data: PreparedData) -> None:
        """Refuse settings that need scores if the data has nothing to be scored.

        Raises:
            UsageError: If a setting needs scores, and the data has no dev split.
        """
        if "dev" not in data.splits:
            _refuse_need_of_scores(
                self.settings,
                " and data without a dev split, whose scores it needs: leave it out, "
                "or prepare the data with dev text.",
            )

    def with_bleu_tokenizer(self, data: PreparedData) -> TrainingConfig:
        """Return the same training with the tokenizer that all its scores use.

        It stays "auto" if the problem is not scored by BLEU, or there is no dev text.

        Args:
            data: Prepared data.
        """
        chosen = self.settings.bleu_tokenizer
        if chosen == AUTO_TOKENIZER and self.resumed_run is not None:
            chosen = self.resumed_run.bleu_tokenizer
        problem = data.problem
        if chosen == AUTO_TOKENIZER and problem.scores_bleu and "dev" in data.splits:
            _, references = data.raw_text("dev")
            chosen = announced_tokenizer(chosen, references, problem.target_language)
        return self.replace(bleu_tokenizer=chosen)

    def replace(self, **settings: Any) -> TrainingConfig:
        """Return the same training with other settings."""
        return dataclasses.replace(self, settings=self.settings.replace(**settings))


def resolved_hparams(settings: TrainSettings) -> HParams:
    """Return the hparams of a training run: the set, its overrides, derived values.

    Raises:
        UsageError: If the set is unknown or an override is refused.
    """
    catalogue.load(settings.t2t_usr_dir)
    return catalogue.hparams(settings.hparams_set).parse(settings.hparams).resolved()


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


def _refuse_need_of_scores(settings: TrainSettings, reason: str) -> None:
    """Refuse settings that depend on the scores of evaluations.

    Args:
        settings: Settings of the training run.
        reason: The rest of the message.

    Raises:
        UsageError: If a setting depends on scores.
    """
    needy = {
        "early_stopping_patience": settings.early_stopping_patience,
        "keep_best": settings.keep_best - 1,
    }
    for name, value in needy.items():
        if value:
            raise UsageError(f"received {name}={getattr(settings, name)}{reason}")


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
