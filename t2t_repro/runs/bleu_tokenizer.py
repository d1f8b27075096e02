"""The tokenizer of BLEU in a training run: checked before it, chosen once, recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_repro.choices import AUTO_TOKENIZER
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError
from t2t_repro.runs.run import Run
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.translation_scores import announced_tokenizer, check_usable

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData


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


def check_same_tokenizer(settings: TrainSettings, run: Run) -> None:
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


def with_chosen_tokenizer(
    settings: TrainSettings, data: PreparedData, run: Run | None
) -> TrainSettings:
    """Return settings with the tokenizer that all scores of a run use.

    It stays "auto" if the problem is not scored by BLEU, or there is no dev text.

    Args:
        settings: Settings of the training run.
        data: Prepared data.
        run: The run to resume, or None.
    """
    chosen = settings.bleu_tokenizer
    if chosen == AUTO_TOKENIZER and run is not None:
        chosen = run.bleu_tokenizer
    problem = data.problem
    if chosen == AUTO_TOKENIZER and problem.scores_bleu and "dev" in data.splits:
        _, references = data.raw_text("dev")
        chosen = announced_tokenizer(chosen, references, problem.target_language)
    return settings.replace(bleu_tokenizer=chosen)
