"""Scores of a trained row, in addition to those of `t2t evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import evaluation_batches
from t2t_repro.features.parsing.bracketing import BracketingScores, score_trees
from t2t_repro.features.parsing.tree_problem import read_tree
from t2t_repro.runs.evaluators import likelihood_evaluator
from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.translation_scores import bleu

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs import Evaluation, System, TranslatingSystem


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


# Largest number of words of each class but the last, punctuation included.
LENGTHS = (10, 20, 30, 40)


def f1_by_length(
    hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, float]:
    """Return the F1 of the sentences of each class of lengths that has any.

    Args:
        hypotheses: Trees in the Penn Treebank's format, over the references' words.
        references: The true trees.

    Returns:
        F1 by the name of the class, such as "11 to 20 words", shortest first.
    """
    pairs = [
        (read_tree(hypothesis), read_tree(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    scores = {}
    for low, high in zip((0, *LENGTHS), (*LENGTHS, None), strict=True):
        own = [
            (hypothesis, reference)
            for hypothesis, reference in pairs
            if low < len(reference.leaves)
            and (not high or len(reference.leaves) <= high)
        ]
        if own:
            scores[_class_name(low, high)] = score_trees(*zip(*own, strict=True)).f1
    return scores


def score_name(class_name: str, split: str) -> str:
    """Return the name of a class's score in a result file."""
    return f"F1, {class_name} ({split})"


def _class_name(low: int, high: int | None) -> str:
    return f"over {low} words" if high is None else f"{low + 1} to {high} words"


class SplitScores(NamedTuple):
    """Scores of a system on some splits.

    Attributes:
        outputs: Outputs by split.
        scores: Scores by name, as result files hold them.
        signature: sacreBLEU's signature, or an empty string for other scores.
    """

    outputs: dict[str, Output]
    scores: dict[str, float]
    signature: str


def score_splits(
    system: TranslatingSystem, data: PreparedData, splits: Sequence[str]
) -> SplitScores:
    """Score a system on some splits, with the problem's search.

    Args:
        system: The system.
        data: Prepared data of its training.
        splits: The splits.
    """
    outputs, scores, signature = {}, {}, ""
    for split in splits:
        sources, references = data.raw_text(split)
        evaluation = system.evaluate(sources, references)
        outputs[split] = Output(evaluation, references)
        scores |= named_scores(evaluation, references, split)
        signature = _signature(evaluation)
    return SplitScores(outputs, scores, signature)


def named_scores(
    evaluation: Evaluation, references: Sequence[str], split: str
) -> dict[str, float]:
    """Return the scores that a result file holds for a split, by name."""
    scores: Any = evaluation.scores
    if not isinstance(scores, BracketingScores):
        return {f"BLEU ({split})": scores.bleu.value}
    by_length = f1_by_length(evaluation.hypotheses, references)
    return {
        f"F1 ({split})": scores.f1,
        f"F1 up to 40 words ({split})": scores.f1_up_to_40,
        f"% repaired ({split})": 100 * (evaluation.repaired / scores.sentences),
        **{score_name(name, split): f1 for name, f1 in by_length.items()},
    }


def _signature(evaluation: Evaluation) -> str:
    """Return sacreBLEU's signature, or an empty string for other scores."""
    scores: Any = evaluation.scores
    return "" if isinstance(scores, BracketingScores) else scores.bleu.signature
