"""Scores that rank systems: the nll on dev, and BLEU on several splits together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import evaluation_batches
from t2t_repro.runs.evaluators import likelihood_evaluator
from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.translation_scores import bleu

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs import Evaluation, System


class Output(NamedTuple):
    """Evaluation of a system on a split.

    Attributes:
        evaluation: Its outputs and their scores.
        references: One reference per output.
    """

    evaluation: Evaluation
    references: Sequence[str]


def ranking_scores(
    system: System, data: PreparedData, outputs: Mapping[str, Output]
) -> dict[str, float]:
    """Return the scores that rank translation systems, by name.

    Args:
        system: The system.
        data: Prepared data of its training.
        outputs: Its outputs by split.

    Returns:
        "nll (dev)", "perplexity (dev)" and "BLEU (dev+test)", if these are the splits.
    """
    likelihood = dev_likelihood(system, data)
    scores = {f"{name} (dev)": value for name, value in likelihood.items()}
    return scores | {f"BLEU ({'+'.join(outputs)})": pooled_bleu([*outputs.values()])}


def dev_likelihood(system: System, data: PreparedData) -> dict[str, float]:
    """Return the "nll" and "perplexity" of a system on the dev split.

    Both are per target token, as the evaluations during its training measure them:
    without label smoothing, and without pairs longer than the hparam `max_length`.

    Args:
        system: The system.
        data: Prepared data of its training.
    """
    plan = BatchPlan.for_evaluation(system.run.hparams)
    batches = evaluation_batches(data.shards("dev"), plan)
    evaluate = likelihood_evaluator(system.model, batches)
    log = MetricsLog(system.checkpoint)  # The evaluator writes nothing to it.
    measured = evaluate(step_of(system.checkpoint), log)
    return {name: measured[name] for name in ("nll", "perplexity") if name in measured}


def pooled_bleu(outputs: Sequence[Output]) -> float:
    """Return corpus BLEU on all outputs together, 0 to 100.

    Its signature is that of each split: `metrics.translation` has one kind of cased
    BLEU.
    """
    hypotheses = [line for output in outputs for line in output.evaluation.hypotheses]
    references = [line for output in outputs for line in output.references]
    return bleu(hypotheses, references)
