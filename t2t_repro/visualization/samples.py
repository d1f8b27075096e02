"""Attention of a few dev sentences at every evaluation of a training run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.models.transformer import Transformer
from t2t_repro.text.tokenizer import Tokenizer
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.visualization.capture import (
    capture_attention,
    encode_source,
    encode_target,
)
from t2t_repro.visualization.summaries import write_attention

IdPair = tuple[list[int], list[int]]


def sample_pairs(
    problem: Problem,
    tokenizers: tuple[Tokenizer, Tokenizer],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    count: int,
    longest: int,
) -> list[IdPair]:
    """Return the ids of the first pairs that a model can be asked about.

    Args:
        problem: Problem that converts the texts to the forms that the model reads and
            writes.
        tokenizers: Tokenizers of the sources and of the targets.
        sources: Dev sentences.
        references: Their targets.
        count: Number of pairs; fewer if there are fewer.
        longest: Largest number of tokens per side, including EOS.
    """
    pairs: list[IdPair] = []
    for source, reference in zip(sources, references, strict=True):
        if len(pairs) == count:
            break
        try:
            pairs.append(
                (
                    encode_source(
                        tokenizers[0], problem.normalize_source(source), longest
                    ),
                    encode_target(
                        tokenizers[1], problem.encode_target(reference), longest
                    ),
                )
            )
        except UserError:  # empty, too long or not in the vocabulary
            continue
    return pairs


def attention_evaluator(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    pairs: Sequence[IdPair],
    languages: tuple[str | None, str | None] = (None, None),
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator that writes the attention of sample sentences.

    The targets are the references, so that the tokens are the same at all steps and a
    viewer can follow how the attention between them appears.

    Args:
        model: The model in training.
        tokenizers: Tokenizers of the sources and of the targets.
        pairs: Ids of the sources and the targets, from `sample_pairs`.
        languages: Codes of the languages of the sources and of the targets, if known.

    Returns:
        A function that writes to the log and returns no scores.
    """

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        for number, (source, target) in enumerate(pairs):
            attention = capture_attention(
                model,
                tokenizers,
                source,
                target,
                title=f"dev sentence {number + 1}",
                languages=languages,
            )
            write_attention(log, step, number, attention.to_document())
        return {}

    return evaluate
